"""The page of deviations: where a method departs from its official code or from the paper, as its RECIPE says."""

from collections.abc import Iterable
from pathlib import Path

from methods.core.files import write
from workflow.suite.planning import recipes
from workflow.suite.planning.recipes import Recipe

PAGE = Path("docs/deviations.md")
HEAD = ("About", "There", "Here", "Why")
INTRODUCTION = """# Deviations

Where this suite departs from a method's official code or from the paper, by method. "There" is the official code unless the paper is named.
Each entry stands in the `RECIPE` of the method's file, under `deviations`; `python -m workflow.suite deviations` writes this page.
"""


def page(methods: Iterable[Recipe]) -> str:
    """The page in Markdown."""
    return "\n".join([INTRODUCTION, *(_section(recipe) for recipe in methods)])


def write_page(root: Path, directory: Path) -> Path:
    """Write the page of the repository at `root` below a directory; returns its path."""
    write(directory / PAGE, page(recipes.load_all(root).values()))
    return directory / PAGE


def _section(recipe: Recipe) -> str:
    title = f"## {recipe.name} (`{recipe.path.as_posix()}`)\n\n{recipe.cites}.\n"
    if not recipe.deviations:
        return f"{title}\nNone are recorded.\n"
    lines = [HEAD, ("---",) * len(HEAD), *recipe.deviations]
    return "\n".join([title, *(f"| {' | '.join(map(_cell, line))} |" for line in lines), ""])


def _cell(text: str) -> str:
    """A text in a cell of a Markdown table: on one line, with no bar that would end the cell, and no mark-up of HTML."""
    return " ".join(text.split()).replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;")
