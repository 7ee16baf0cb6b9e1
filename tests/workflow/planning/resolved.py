"""The resolved settings of every distinct Run at scale paper, as one readable text that is kept beside this file.

A change of a recipe, a table or the scale shows up there as a change of a few lines. To accept it:

    python -m tests.workflow.planning.resolved

and review the difference. Runs of one method, phase, data set, precision and attack form a group, named by these: what all of them share is
listed once, then each Run has a line with the rest. Ids are left out: they follow from the settings. Instead of its id, a parent is given
by its name.
"""

from pathlib import Path

import yaml

from methods.core.files import write
from methods.core.run_spec import leaves
from workflow.suite.planning import plan

FILE = Path(__file__).with_name("resolved_paper.yaml")
GROUP = ("method", "phase", "dataset", "precision", "attack.name")


def settings(planned: plan.Plan, name: str) -> dict[str, object]:
    """Everything that decides a Run's numbers, under dotted keys: its own settings, then those of its evaluation."""
    run = planned.runs[name]
    flat = dict(leaves(run.spec))
    if run.parent:
        flat["parent"] = run.parent.rpartition(".")[0]
    if evaluation := planned.evaluations.get(name):
        flat |= {f"evaluate.{key}": value for key, value in leaves(evaluation.spec)}
    return dict(sorted(flat.items()))


def text(planned: plan.Plan) -> str:
    """The groups in order of their names, in YAML."""
    groups: dict[str, list[dict[str, object]]] = {}
    for name in planned.runs:
        flat = settings(planned, name)
        title = ", ".join(f"{key} {flat.pop(key)}" for key in GROUP if key in flat)
        groups.setdefault(title, []).append(flat)
    return "# Written by `python -m tests.workflow.planning.resolved`: see there.\n" + "\n".join(
        _group(title, runs) for title, runs in sorted(groups.items())
    )


def _group(title: str, runs: list[dict[str, object]]) -> str:
    shared = {key: value for key, value in runs[0].items() if all(key in run and run[key] == value for run in runs)}
    own = sorted(_line({key: value for key, value in run.items() if key not in shared}) for run in runs)
    lines = [f"{title}:", "  shared:", *(f"    {_line({key: value})[1:-1]}" for key, value in shared.items())]
    return "\n".join([*lines, f"  runs:  # {len(runs)}", *(f"    - {line}" for line in own), ""])


def _line(values: dict[str, object]) -> str:
    """A mapping on one line, in YAML."""
    return yaml.safe_dump(values, default_flow_style=True, width=float("inf"), sort_keys=False).strip()


def main() -> None:
    write(FILE, text(plan.load("paper", data_root=Path("no-data-here"))))
    print(f"{FILE} is written; review what changed")


if __name__ == "__main__":
    main()
