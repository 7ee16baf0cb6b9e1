"""All finished evaluations of a scale as one pandas frame: a line per Run, fractions as measured, settings beside them."""

import json
from pathlib import Path

import pandas as pd

from methods.core.run_spec import leaves
from workflow.suite.planning.plan import Plan
from workflow.suite.results.measure import label, read

NUMBERS = ("clean_acc", "robust_acc", "n", "n_clean", "n_robust")


def collect(plan: Plan, folder: Path) -> pd.DataFrame:
    """The frame; columns `spec.*` hold the Run's settings, `after.*` the accuracy left after each attack."""
    lines = []
    for run in plan.final_runs():
        chosen = plan.evaluations[run]
        result = read(run, chosen.id, folder)
        if result is None:
            continue
        line = {"run": run, "evaluation": chosen.id, "data": label(result), "warnings": len(result.get("warnings", ()))}
        line |= {key: result.get(key) for key in NUMBERS}
        line |= {f"after.{attack}": left for attack, left in result.get("after", {}).items()}
        line |= {f"spec.{key}": _text(value) for key, value in leaves(plan.runs[run].spec)}
        lines.append(line)
    return pd.DataFrame(lines, columns=None if lines else ["run", "evaluation", "data", "warnings", *NUMBERS])


def _text(value: object) -> str | None:
    """Settings as text: one key may hold a number in one Run and a word in another (p, eps), which no typed column can."""
    return value if value is None or isinstance(value, str) else json.dumps(value)
