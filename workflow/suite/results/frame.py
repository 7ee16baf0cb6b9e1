"""The measured numbers of a scale as one tidy pandas frame: a line per cell of a table and seed, typed columns (frame_columns.py)."""

import io
from pathlib import Path
from typing import Any

import pandas as pd

from methods.core import paths
from methods.core.errors import UserError
from methods.core.radius import radius
from methods.core.run_spec import get
from workflow.suite.planning.plan import Cell, Plan
from workflow.suite.results import names, run_facts, stale, stats, trust
from workflow.suite.results.frame_columns import ATTACKS, TEXT, TYPES
from workflow.suite.results.measure import COUNTS, label
from workflow.suite.results.run_facts import RunFacts
from workflow.suite.tables import inert


def collect(plan: Plan, folder: Path) -> pd.DataFrame:
    """Every cell and seed that is measured, in the order of the tables. A Run that several cells share has a line for each."""
    of_runs: dict[str, dict[str, Any] | None] = {run: _of_run(plan, run, folder) for run in plan.final_runs()}
    lines = [_of_cell(plan, cell, measured) for cell in plan.cells.values() for run in cell.runs if (measured := of_runs[run]) is not None]
    return pd.DataFrame(lines, columns=list(TYPES)).astype(TYPES)


def contents(frame: pd.DataFrame) -> dict[str, bytes]:
    """Kind -> the frame as a file of that kind. In the CSV no text is one that a spreadsheet would compute."""
    parquet, safe = io.BytesIO(), frame.copy()
    frame.to_parquet(parquet, index=False)
    for name in (name for name, type in TYPES.items() if type == TEXT):
        safe[name] = safe[name].map(inert.csv_entry, na_action="ignore")
    return {"parquet": parquet.getvalue(), "csv": safe.to_csv(index=False, lineterminator="\n").encode()}


def read(path: Path) -> pd.DataFrame:
    """A frame from either of its files, with the same types."""
    try:
        if path.suffix == ".csv":
            frame = pd.read_csv(path, dtype=TYPES, float_precision="round_trip")
            for name in (name for name, type in TYPES.items() if type == TEXT):
                frame[name] = frame[name].map(inert.from_csv, na_action="ignore")
        else:
            frame = pd.read_parquet(path)
        return frame[list(TYPES)].astype(TYPES)
    except (OSError, ValueError, KeyError) as error:
        why = "there is no such file" if isinstance(error, FileNotFoundError) else error
        raise UserError(
            f"{path}: is not a frame of results ({why}); `snakemake --cores 1 {paths.frame('SCALE', 'parquet')}` makes one"
        ) from None


def _of_cell(plan: Plan, cell: Cell, measured: dict[str, Any]) -> dict[str, Any]:
    value = measured["robust" if cell.metric == "robust_acc" else "clean"]
    low, high = stats.wilson(measured[COUNTS[cell.metric]], measured["n"])
    return {
        **{"scale": plan.scale.name, "comparable": plan.scale.comparable},
        **{"table": cell.table, "row": cell.row, "column": cell.column, "metric": cell.metric},
        **measured,
        **{"value": value, "low": 100 * low, "high": 100 * high, "paper": cell.reported.value},
    }


def _of_run(plan: Plan, run: str, folder: Path) -> dict[str, Any] | None:
    facts = run_facts.of_run(plan, run, folder)
    if facts.evaluated is None:
        return None
    return (
        _settings(plan.runs[run].spec)
        | _numbers(facts)
        | {"run": run, "evaluation": plan.evaluations[run].id}
        | {"stale": bool(stale.reasons(plan, run, folder))}
    )


def _settings(spec: dict[str, Any]) -> dict[str, Any]:
    p = spec.get("p")
    return {
        **{key: spec.get(key) for key in ("method", "dataset", "arch", "lbn", "precision", "seed")},
        **{"name": names.method(spec), "pruning": names.pruning(spec), "attack": get(spec, "attack.name")},
        **{"width": spec.get("width", 1), "r": spec.get("sparsity"), "p": None if p == "global" else p, "a": get(spec, "init.a")},
        "eps": radius(spec["eps"]),
    }


def _numbers(facts: RunFacts) -> dict[str, Any]:
    result = facts.evaluated
    after = {attack.name: attack.left for attack in facts.attacks}
    shares = {"clean": result["clean_acc"], "robust": result.get("robust_acc"), "validation": facts.validation}
    shares |= {column: after.get(attack) for attack, column in ATTACKS.items()}
    return {
        **{name: None if share is None else 100 * share for name, share in shares.items()},
        **{key: result.get(key) for key in ("n", "n_clean", "n_robust")},
        **{"data": label(result), "warnings": len(result.get("warnings", ())), **trust.columns(result)},
        **{"best_epoch": facts.best_epoch, "epochs": facts.epochs, "sparsity": facts.sparsity, "bytes": facts.bytes},
        **{"training_seconds": facts.training_seconds, "evaluation_seconds": facts.evaluation_seconds},
        **{"engine": facts.engine, "evaluation_engine": facts.attacked_by, "compute": facts.compute},
    }
