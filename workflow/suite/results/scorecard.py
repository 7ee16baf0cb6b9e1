"""The results of Runs in a few lines: what `show` leads with."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from tabulate import tabulate

from methods.core import paths
from methods.core.durations import span
from methods.core.run_spec import get
from workflow.suite.planning.plan import Cell, Plan, Run
from workflow.suite.results import run_facts, stats
from workflow.suite.results.run_facts import RunFacts
from workflow.suite.tables import caption

WIDTH = 12  # of the labels


def of_run(plan: Plan, run: Run, folder: Path) -> list[str]:
    """Accuracies, network, time; as far as files tell."""
    facts = run_facts.of_run(plan, run.name, folder)
    lines = [*_accuracies(facts), *_network(facts, run), *_time(facts)]
    return [f"{label:<{WIDTH}}{text}" for label, text in lines]


def of_cells(plan: Plan, cells: Sequence[Cell], folder: Path) -> str:
    """A line per cell and seed that is measured; empty where none is. A column without entries is left out."""
    lines = [_line(plan, cell, facts) for cell in cells for facts in _measured(plan, cell, folder)]
    heads = list(dict.fromkeys(head for line in lines for head, text in line.items() if text))
    return tabulate([[line.get(head, "") for head in heads] for line in lines], heads, disable_numparse=True) if lines else ""


def _measured(plan: Plan, cell: Cell, folder: Path) -> list[RunFacts]:
    return [facts for run in cell.runs if (facts := run_facts.of_run(plan, run, folder)).evaluated is not None]


def _accuracies(facts: RunFacts) -> Iterator[tuple[str, str]]:
    if facts.evaluated is not None:
        yield "clean", _share(facts, "clean")
        if facts.evaluated.get("robust_acc") is not None:
            yield "robust", _share(facts, "robust")
        for attack in facts.attacks:
            yield f"  {attack.name}", f"{caption.percent(attack.left)} % left, broke {attack.broke}"
    if facts.validation is not None:
        epoch = "" if facts.best_epoch is None else f", epoch {facts.best_epoch} of {facts.epochs}"
        yield "validation", f"{caption.percent(facts.validation)} %{epoch}"


def _network(facts: RunFacts, run: Run) -> Iterator[tuple[str, str]]:
    if facts.sparsity is not None:
        declared = get(run.spec, "sparsity")
        yield "sparsity", f"{_sparsity(facts)} of the weights are zero{'' if declared is None else f', r = {declared:g}'}"
    if facts.bytes is not None:
        yield "size", f"{facts.bytes} bytes ({paths.COMPACT})"
    elif facts.sparsity is not None:
        yield "size", f"no {paths.COMPACT}: a network that is not pruned is not packed, its {paths.MODEL} is all there is"


def _time(facts: RunFacts) -> Iterator[tuple[str, str]]:
    phases = f", {len(facts.phases)} phases" if len(facts.phases) > 1 else ""
    spent = [("training", facts.training_seconds, phases), ("evaluation", facts.evaluation_seconds, "")]
    if known := [f"{name} {span(seconds)}{more}" for name, seconds, more in spent if seconds is not None]:
        yield "time", "; ".join(known)
    if facts.engine:
        imitated = " (imitated)" if facts.imitated else ""
        yield "engine", f"training {facts.engine}, {facts.compute}{imitated}{f'; attacks {facts.attacked_by}' if facts.attacked_by else ''}"


def _line(plan: Plan, cell: Cell, facts: RunFacts) -> dict[str, str]:
    result = facts.evaluated
    interval = stats.wilson(result["n_robust"], result["n"]) if result.get("n_robust") is not None else ()
    return {
        **{"row": cell.row, "column": cell.column, "seed": str(facts.seed)},
        **{"clean": caption.percent(result["clean_acc"]), "robust": caption.percent(result.get("robust_acc"))},
        "95 % interval": f"[{', '.join(map(caption.percent, interval))}]" if interval else "",
        "paper": caption.reported(cell.reported),
        **{attack.name: f"{caption.percent(attack.left)} (-{attack.broke})" for attack in facts.attacks},
        "validation": "" if facts.validation is None else f"{caption.percent(facts.validation)}, epoch {facts.best_epoch}/{facts.epochs}",
        "sparsity": "" if facts.sparsity is None else _sparsity(facts),
        "bytes": "" if facts.bytes is None else str(facts.bytes),
        "training": "" if facts.training_seconds is None else span(facts.training_seconds),
        "evaluation": "" if facts.evaluation_seconds is None else span(facts.evaluation_seconds),
        "engine": facts.engine or "",
        "run": plan.runs[facts.run].id,
    }


def _share(facts: RunFacts, name: str) -> str:
    hits, n = facts.evaluated[f"n_{name}"], facts.evaluated["n"]
    low, high = (caption.percent(bound) for bound in stats.wilson(hits, n))
    return f"{caption.percent(facts.evaluated[f'{name}_acc'])} % [{low}, {high}], {hits} of {n} images"


def _sparsity(facts: RunFacts) -> str:
    return f"{100 * facts.sparsity:.2f} %"
