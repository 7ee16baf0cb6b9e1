"""Rendered files of a plan: tables in every format, rows, the frame."""

from collections.abc import Callable, Mapping
from pathlib import Path

from methods.core import files, paths
from methods.core.revision import made_by
from workflow.suite.planning.plan import Plan
from workflow.suite.planning.selection import one_row
from workflow.suite.results import frame
from workflow.suite.tables import latex, markdown, sheet
from workflow.suite.tables.latex import Variant


def write_table(plan: Plan, name: str, folder: Path = Path(), *, where: Callable[[str, str, str], str] = paths.table) -> list[Path]:
    """Render a table in all formats from whatever is finished under `folder`; the files written."""
    by = made_by()
    texts = {
        "md": markdown.table(plan, name, folder, made_by=by),
        "tex": latex.table(plan, name, folder, made_by=by),
        "csv": sheet.table(plan, name, folder),
    }
    return _written(texts, lambda kind: folder / where(plan.scale.name, name, kind))


def write_variant(plan: Plan, name: str, variant: Variant, folder: Path = Path()) -> Path:
    """Render another variant of a LaTeX table, beside the usual one."""
    path = folder / paths.variant(plan.scale.name, name, variant.name)
    files.write(path, latex.table(plan, name, folder, made_by=made_by(), variant=variant))
    return path


def as_markdown(plan: Plan, name: str, folder: Path) -> str:
    """A table from whatever is finished, to be read at once."""
    return markdown.table(plan, name, folder, made_by=made_by())


def write_row(plan: Plan, table: str, row: str, folder: Path = Path()) -> list[Path]:
    """Render one row in all formats; the files written."""
    by, alone = made_by(), one_row(plan, table, row)
    texts = {
        "md": markdown.row(plan, table, row, folder, made_by=by),
        # Its first lines say how it is included, by the name of its file.
        "tex": latex.table(alone, table, folder, made_by=by).replace(f"\\input{{{table}}}", f"\\input{{{table}.{row}}}"),
        "csv": sheet.table(alone, table, folder),
    }
    return _written(texts, lambda kind: folder / paths.row(plan.scale.name, table, row, kind))


def write_frame(plan: Plan, folder: Path = Path()) -> list[Path]:
    """Collect all measured numbers of a scale; the files written, one per kind of paths.FRAMES."""
    contents = frame.contents(frame.collect(plan, folder))
    written = [folder / paths.frame(plan.scale.name, kind) for kind in paths.FRAMES]
    for path, kind in zip(written, paths.FRAMES, strict=True):
        files.write(path, contents[kind])
    return written


def _written(texts: Mapping[str, str], path: Callable[[str], Path]) -> list[Path]:
    for kind, text in texts.items():
        files.write(path(kind), text)
    return [path(kind) for kind in texts]
