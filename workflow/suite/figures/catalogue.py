"""All figures by name: what each shows, which files it needs, how it is drawn."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from workflow.suite import caption, files, paths
from workflow.suite.errors import SuiteError
from workflow.suite.figures import curves, mask_plots, ratio_map, size_plot, style
from workflow.suite.figures.style import Picture
from workflow.suite.masks import Pair, read_pair
from workflow.suite.plan import Plan

# RN34-LBN, binary weights, CIFAR-10, r = 0.99, p = 0.1: the network that the paper's mask figures are of, as far as it says.
SUBJECT = "main_comparison.ours.cifar10-binary"


@dataclass(frozen=True, kw_only=True)
class Figure:
    """A figure: `paper` is its label there, `needs` the files to wait for (none: not available), `code` the modules that draw it."""

    title: str
    about: str
    paper: str | None
    needs: Callable[[Plan], list[str]]
    draw: Callable[[Plan, Path, str, str], Picture]
    code: tuple[str, ...]


def _subject(plan: Plan) -> tuple[str, ...]:
    """The first seed of the network whose masks are shown."""
    return plan.cells[SUBJECT].runs[:1] if SUBJECT in plan.cells else ()


def _of_masks(draw: Callable[[Pair, str, str], Picture]) -> dict:
    def needs(plan: Plan) -> list[str]:
        return [paths.train_manifest(run) for run in _subject(plan)]

    def from_model(plan: Plan, folder: Path, title: str, foot: str) -> Picture:
        (run,) = _subject(plan)
        return draw(read_pair(folder / paths.model(run)), title, f"{foot}\nRun {plan.runs[run].id}")

    return {"needs": needs, "draw": from_model, "code": ("masks", "theory", "figures/mask_plots")}


def _of_table(table: str) -> Callable[[Plan], list[str]]:
    def needs(plan: Plan) -> list[str]:
        return [paths.evaluation(run, plan.evaluations[run].id) for run in plan.final_runs(table)] if table in plan.tables else []

    return needs


def _of_sizes(plan: Plan) -> list[str]:
    runs = dict.fromkeys(run for cell in size_plot.cells_of(plan) for run in cell.runs)
    return [path for run in runs for path in (paths.evaluation(run, plan.evaluations[run].id), paths.train_manifest(run))]


def _of_curves(plan: Plan) -> list[str]:
    if curves.TABLE not in plan.tables:
        return []
    return [paths.train_manifest(run) for runs in curves.runs_of(plan).values() for run in runs]


FIGURES: Mapping[str, Figure] = {
    "mask_dist": Figure(
        title="Kept weights per channel",
        about="How many weights each input and output channel of two consecutive layers keeps, beside random pruning.",
        paper="fig:mask_dist",
        **_of_masks(mask_plots.distribution),
    ),
    "kernel_histogram": Figure(
        title="Kept weights per kernel",
        about="How many of the nine weights each kernel of a layer keeps, beside the expectation of random pruning.",
        paper="fig:mask distribution 2",
        **_of_masks(mask_plots.kernels),
    ),
    "mask_alignment": Figure(
        title="Masks of two consecutive layers",
        about="Whether the channels that one layer leaves empty are those that the next does not read.",
        paper="fig:mask 2 layers",
        **_of_masks(mask_plots.alignment),
    ),
    "mask_full": Figure(
        title="Mask of one layer",
        about="Every kept weight of a layer; input channels that are never read are orange.",
        paper="fig:mask_full",
        **_of_masks(mask_plots.full),
    ),
    "learning_curves": Figure(
        title="Learning curves under adaptive pruning",
        about="Accuracy by epoch at two pruning rates and four pruning strategies.",
        paper="fig:stability",
        needs=_of_curves,
        draw=curves.draw,
        code=("figures/curves",),
    ),
    "ratio_map": Figure(
        title="Pruning rate and pruning strategy",
        about="Robust accuracy for every pruning rate and strategy, ours beside the paper's.",
        paper=None,
        needs=_of_table(ratio_map.TABLE),
        draw=ratio_map.draw,
        code=("figures/ratio_map", "measure", "marks"),
    ),
    "size_accuracy": Figure(
        title="Robust accuracy against model size",
        about="Robust accuracy of every method of the comparisons against the kilobytes its network needs; size.py has the formula.",
        paper=None,
        needs=_of_sizes,
        draw=size_plot.draw,
        code=("figures/size_plot", "size", "measure", "stats"),
    ),
}


def find(name: str) -> Figure:
    """A figure by name, or a clear error."""
    if name not in FIGURES:
        raise SuiteError(f"no figure is called '{name}'; allowed: {', '.join(FIGURES)}")
    return FIGURES[name]


def available(plan: Plan) -> list[str]:
    """The figures that this plan has Runs for."""
    return [name for name, figure in FIGURES.items() if figure.needs(plan)]


def write(plan: Plan, name: str, folder: Path = Path()) -> list[Path]:
    """Draw a figure from the finished Runs under `folder`; the files written."""
    figure = find(name)
    if not figure.needs(plan):
        raise SuiteError(
            f"figure '{name}' has no Runs at scale '{plan.scale.name}'; `python -m workflow.suite status` says what is missing"
        )
    with style.look():
        contents = style.files_of(figure.draw(plan, folder, figure.title, caption.comparability(plan)), figure.title)
    written = [folder / paths.figure(plan.scale.name, name, kind) for kind in contents]
    for path, content in zip(written, contents.values(), strict=True):
        files.write(path, content)
    return written
