"""The words around a table, shared by all formats: what scale, what data, how evaluated, what is missing and why."""

from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

from methods.core import paths
from methods.core.datasets import DATASETS
from workflow.suite.planning.plan import Plan
from workflow.suite.planning.tables import Reported
from workflow.suite.results import others, stale
from workflow.suite.results.measure import Measured

TIED = "not significantly below the best of its column (McNemar's test over the same images, Student's t over seeds; Holm's correction)"
METRICS = {"robust_acc": "robust accuracy", "clean_acc": "clean accuracy"}


def percent(value: float | None) -> str:
    """A fraction as the paper prints it; the only place where fractions become percent."""
    return "" if value is None else f"{100 * value:.2f}"


def reported(cell: Reported) -> str:
    """The paper's entry, which is in percent already; a cell that spans two rows is shown in the lower one; nothing in other tables."""
    if cell.absent:
        return ""
    return "below" if cell.shared else "-" if cell.value is None else f"{cell.value:.2f}"


def comparability(plan: Plan) -> str:
    """Whether these numbers may be held against the paper's."""
    can = "can be compared with the paper's numbers" if plan.scale.comparable else "NOT comparable with the paper's numbers"
    return f"Scale {plan.scale.name}, {can}: {plan.scale.why}."


def data_lines(plan: Plan, table: str, measured: Iterable[Measured]) -> list[str]:
    """One line per kind of data that was measured on, else what is planned."""
    labels = dict.fromkeys(text for item in measured for text in item.labels)
    if labels:
        return list(labels)
    sources = dict.fromkeys((plan.runs[run].spec["dataset"], plan.runs[run].spec["data"]["source"]) for run in plan.final_runs(table))
    return [f"{DATASETS[dataset].title}, {source} (planned)" for dataset, source in sources]


def evaluation_line(plan: Plan, table: str, measured: Iterable[Measured]) -> str:
    """How the numbers were measured, and on how many images."""
    counts = sorted({item.n for item in measured if item.n})
    images = f"n = {' or '.join(map(str, counts))} test images" if counts else "nothing measured yet"
    attacks = dict.fromkeys(attack_name(plan.evaluations[run].spec) for run in plan.final_runs(table))
    how = f" ({'; '.join(attacks)})" if attacks and plan.tables[table].metric == "robust_acc" else ""
    return f"{METRICS[plan.tables[table].metric].capitalize()} in %{how}, {images}, seed {seeds_line(plan, table)}."


def seeds_line(plan: Plan, table: str) -> str:
    """The seeds of most cells; those of rows with seeds of their own behind them."""
    lists = Counter(plan.seeds_of(cell) for cell in plan.cells_of(table) if cell.runs) or Counter([plan.scale.seeds])
    first, *others = (", ".join(map(str, seeds)) for seeds, _ in lists.most_common())
    return first + (f" (in some rows {' or '.join(others)})" if others else "")


def stale_lines(plan: Plan, table: str, folder: Path, row: str | None = None) -> list[str]:
    """A warning where finished numbers were made by other code than what lies here."""
    runs = [run for run in plan.final_runs(table, row) if (folder / paths.evaluation(run, plan.evaluations[run].id)).is_file()]
    old = sum(bool(stale.reasons(plan, run, folder)) for run in runs)
    how = f"python -m workflow.suite diff --scale {plan.scale.name} --table {table}"
    return [f"STALE: the code behind {old} of {len(runs)} runs has changed since, or is not recorded ({how} names it)."] if old else []


def attack_name(evaluation: Mapping) -> str:
    """An evaluation's attack in words."""
    attack = evaluation["attack"]
    if attack == "standard":
        return "standard AutoAttack"
    return "no attack" if attack == "clean" else "reduced AutoAttack"


class Footnotes:
    """Numbers texts in order of first use, so that equal reasons share a number; `compared` are notes by row and column."""

    def __init__(self, plan: Plan, compared: Mapping[tuple[str, str], str]) -> None:
        self.plan, self.compared = plan, compared
        self.texts: list[str] = []

    def number(self, text: str) -> int:
        if text not in self.texts:
            self.texts.append(text)
        return self.texts.index(text) + 1

    def of(self, item: Measured) -> list[int]:
        """The numbers of everything there is to say about a cell."""
        cell = item.cell
        texts = [f"not available: {cell.unavailable}"] if cell.unavailable else []
        texts += [f"not applicable: {cell.not_applicable}"] if cell.not_applicable else []
        texts += [f"{len(item.values)} of {len(cell.runs)} seeds are finished"] if item.status == "partial" else []
        texts += [*cell.notes, *others.footnotes(self.plan, cell)]
        texts += [self.compared[key]] if (key := (cell.row, cell.column)) in self.compared else []
        return [self.number(text) for text in texts]


def spread_lines(item: Measured) -> list[str]:
    """Where the uncertainty of a mean over several seeds comes from."""
    if item.sd is None or item.outcomes is None:
        return []
    from workflow.suite.results import variance  # numpy: slow to import, and only needed here

    split = variance.split(item.outcomes.right)
    return [
        f"other trainings would move the mean by {percent(split.from_seeds)} points, other test images by {percent(split.from_images)}"
        f" (standard deviations; {split.seeds} seeds, {split.images} images)"
    ]


def shown(item: Measured, *, exact: bool = True) -> str:
    """Our side of a cell as plain text: a number with its interval or spread, or a sign for why there is none."""
    if item.value is None:
        return {"not applicable": "-", "not run": "·"}.get(item.status, "n.a.")
    if not exact:
        return percent(item.value)
    if item.sd is not None:
        return f"{percent(item.value)} ± {percent(item.sd)}"
    low, high = item.interval
    return f"{percent(item.value)} [{percent(low)}, {percent(high)}]"
