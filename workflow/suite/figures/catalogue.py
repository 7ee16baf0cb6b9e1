"""All figures by name: what each shows, which files it needs, which function draws it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from methods.core import files, paths
from methods.core.errors import UserError
from workflow.suite.figures import needs
from workflow.suite.planning.plan import Plan
from workflow.suite.tables import caption


@dataclass(frozen=True, kw_only=True)
class Figure:
    """A figure: `paper` is its label there; `needs` gives the files to wait for, none where it is not available; `draw` names a function
    (plan, folder, title, foot) of a module of this package, loaded when it is drawn; it is also given `table`, where that is named. One
    that waits for nothing and shows whichever of its files are there has `present` in the place of `needs`, and `how` says what makes such
    a file."""

    title: str
    about: str
    paper: str | None
    needs: Callable[[Plan], list[str]] = lambda plan: []
    draw: str
    present: Callable[[Plan, Path], list[str]] | None = None
    how: str = "none of the Runs that it needs is available at this scale"
    table: str | None = None

    def inputs(self, plan: Plan, folder: Path = Path()) -> list[str]:
        """The files that it is drawn from; none where it cannot be drawn."""
        return self.present(plan, folder) if self.present else self.needs(plan)

    @property
    def modules(self) -> tuple[str, ...]:
        """The modules that draw it, below the suite; the rule depends on all that they reach."""
        return (f"figures.{self.draw.partition('.')[0]}", "figures.style", "figures.catalogue")


# Tables whose trainings are shown one by one.
CURVES = {
    "main_comparison": "the comparison",
    "sp_ratio": "pruning rates and strategies",
    "bn_ablation": "the last batch norm",
    "main_ablation": "the ablation",
    "comparison_rn18_rn50": "RN18 and RN50",
}
FIGURES: Mapping[str, Figure] = {
    "mask_dist": Figure(
        title="Kept weights per channel",
        about="How many weights each input and output channel of two consecutive layers keeps, beside random pruning.",
        paper="fig:mask_dist",
        needs=needs.of_masks,
        draw="mask_plots.distribution",
    ),
    "kernel_histogram": Figure(
        title="Kept weights per kernel",
        about="How many of the nine weights each kernel of a layer keeps, beside the expectation of random pruning.",
        paper="fig:mask distribution 2",
        needs=needs.of_masks,
        draw="mask_plots.kernels",
    ),
    "mask_alignment": Figure(
        title="Masks of two consecutive layers",
        about="Whether the channels that one layer leaves empty are those that the next does not read.",
        paper="fig:mask 2 layers",
        needs=needs.of_masks,
        draw="mask_plots.alignment",
    ),
    "mask_full": Figure(
        title="Mask of one layer",
        about="Every kept weight of a layer; input channels that are never read are orange.",
        paper="fig:mask_full",
        needs=needs.of_masks,
        draw="mask_plots.full",
    ),
    "mask_origin": Figure(
        title="Where the structure of a mask comes from",
        about=(
            "Empty channels of every layer before training, after the first epoch and in the end, beside random pruning; and the pruned"
            " weights whose gradient is exactly zero."
        ),
        paper=None,
        needs=needs.of_origin,
        draw="mask_origin.draw",
    ),
    "learning_curves": Figure(
        title="Learning curves under adaptive pruning",
        about="Accuracy by epoch at two pruning rates and four pruning strategies.",
        paper="fig:stability",
        needs=needs.of_curves,
        draw="curves.draw",
    ),
    "ratio_map": Figure(
        title="Pruning rate and pruning strategy",
        about="Robust accuracy for every pruning rate and strategy, ours beside the paper's.",
        paper=None,
        needs=needs.of_ratios,
        draw="ratio_map.draw",
    ),
    "critical_difference": Figure(
        title="Methods by mean rank over settings",
        about="Which methods can be told apart over five data sets and architectures: Friedman's test and Nemenyi's critical difference.",
        paper=None,
        needs=needs.of_ranks,
        draw="critical_difference.draw",
    ),
    "security_curves": Figure(
        title="Security curves",
        about="Robust accuracy against the radius of the attack, in Linf and L2, of Runs that such a curve was measured for.",
        paper=None,
        present=needs.of_security,
        how=f"no curve is measured; `snakemake --cores 1 {paths.security_curve('RUN', 'Linf')}` measures that of a Run",
        draw="security.draw",
    ),
    "size_accuracy": Figure(
        title="Robust accuracy against model size",
        about="Robust accuracy of every method of the comparisons against the kilobytes its network needs; size.py has the formula.",
        paper=None,
        needs=needs.of_sizes,
        draw="size_plot.draw",
    ),
    **{
        f"curves_{table}": Figure(
            title=f"Learning curves: {words}",
            about="Robust accuracy on the validation images by epoch, for every training of a table.",
            paper=None,
            needs=needs.of_table(table),
            draw="table_curves.draw",
            table=table,
        )
        for table, words in CURVES.items()
    },
}


def find(name: str) -> Figure:
    """A figure by name, or a clear error."""
    if name not in FIGURES:
        raise UserError(f"no figure is called '{name}'; allowed: {', '.join(FIGURES)}")
    return FIGURES[name]


def available(plan: Plan, folder: Path = Path()) -> list[str]:
    """The figures that this plan has Runs for, or files under `folder`."""
    return [name for name, figure in FIGURES.items() if figure.inputs(plan, folder)]


def write(plan: Plan, name: str, folder: Path = Path()) -> list[Path]:
    """Draw a figure from the finished Runs under `folder`; the files written."""
    figure = find(name)
    if not figure.inputs(plan, folder):
        why = f"{figure.how}; `python -m workflow.suite status` says what is missing"
        raise UserError(f"figure '{name}' cannot be drawn at scale '{plan.scale.name}': {why}")
    from workflow.suite.figures import style  # plotting libraries are slow to load, and only needed here

    module, _, function = figure.draw.partition(".")
    draw = getattr(import_module(f"workflow.suite.figures.{module}"), function)
    more = (figure.table,) if figure.table else ()
    with style.look():
        contents = style.files_of(draw(plan, folder, figure.title, caption.comparability(plan), *more), figure.title)
    written = [folder / paths.figure(plan.scale.name, name, kind) for kind in contents]
    for path, content in zip(written, contents.values(), strict=True):
        files.write(path, content)
    return written
