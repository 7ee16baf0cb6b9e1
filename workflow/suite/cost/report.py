"""What a plan costs before it is run: hours and dollars per table and in total, its dearest cells, and what a budget pays for."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from tabulate import tabulate

from workflow.suite.cost.accuracy import check
from workflow.suite.cost.devices import Device
from workflow.suite.cost.runs import Cost, of_run, runs_of
from workflow.suite.planning.plan import Cell, Plan

HOUR = 3600.0
DEAREST = 10


def report(
    plan: Plan,
    device: Device,
    folder: Path,
    *,
    table: str | None = None,
    row: str | None = None,
    price: float | None = None,
    budget: float | None = None,
    also: Plan | None = None,
) -> str:
    """The cost as text; finished Runs of the plan (and of `also`) say how far off the model is."""
    price = device.price if price is None else price
    names = [plan.table(table).name] if table else list(plan.tables)
    costs = {run: of_run(plan, run, device) for run in runs_of(plan, table, row)}
    users = Counter(run for name in plan.tables for run in runs_of(plan, name))
    lines = [_line(name, runs_of(plan, name, row), costs, price, users) for name in names]
    if table is None:
        lines.append(_line("all, each run once", list(costs), costs, price))
    heads = [
        "table",
        "runs",
        "training h",
        "evaluation h",
        "at most h",
        "sum h",
        *(["sum $"] if price is not None else []),
        "of it shared h",
    ]
    parts = [
        f"scale {plan.scale.name}, hours of one device: {device.title}",
        *assumptions(plan, device, costs, price),
        tabulate(lines, heads, floatfmt=",.2f"),
        "A run that several tables share counts in each of them and once in the total. Usual evaluations take the paper's robust",
        "accuracies; at most every image withstands every attack. The sum takes the usual ones.",
        *dearest(plan, names, row, costs, price),
    ]
    if budget is not None:
        parts += within(budget, {name: runs_of(plan, name, row) for name in names}, costs)
    plans = [plan] + ([also] if also and also.scale.name != plan.scale.name else [])
    return "\n".join([*parts, *dict.fromkeys(line for item in plans for line in check(item, device, folder))])


def assumptions(plan: Plan, device: Device, costs: Iterable[str], price: float | None) -> list[str]:
    """What the figures rest on."""
    specs = [plan.runs[run].spec for run in costs]
    formats = dict.fromkeys(["fp32", *(spec["train"].get("compute", "fp32") for spec in specs)])
    lines = [f"{compute}: {device.rates_in(compute).source}" for compute in formats]
    lines.append(f"{'No price is known' if price is None else f'${price:.2f} per hour'}; --price states yours.")
    waiting = sum(map(device.waits_for_photographs, specs))
    if waiting:
        lines.append(f"{waiting} trainings wait for photographs: the host is taken to read {device.photographs:,.0f} of them per second.")
    if device.title == "one CPU core" or (device.measured and device.threads and "thread(s)" in device.title):
        lines.append("Convolutions are counted as dense: the engine for pruned networks on CPUs, which takes less, is not counted.")
    return lines


def _line(name: str, runs: Iterable[str], costs: Mapping[str, Cost], price: float | None, users: Counter[str] | None = None) -> list:
    chosen = {run: costs[run] for run in runs}
    train, usual, most = (sum(getattr(cost, part) for cost in chosen.values()) / HOUR for part in ("train", "evaluate", "most"))
    shared = "" if users is None else sum(cost.usual for run, cost in chosen.items() if users[run] > 1) / HOUR
    return [name, len(chosen), train, usual, most, train + usual, *([] if price is None else [price * (train + usual)]), shared]


def dearest(plan: Plan, tables: Sequence[str], row: str | None, costs: Mapping[str, Cost], price: float | None) -> list[str]:
    """The cells that cost most, with all phases and seeds that they need; cells that ask for the same Runs stand in one line."""
    same: dict[tuple[str, ...], list[Cell]] = {}
    for cell in (cell for name in tables for cell in plan.cells_of(name, row) if cell.runs):
        needed = dict.fromkeys(run.name for final in cell.runs for run in plan.lineage(final))
        same.setdefault(tuple(needed), []).append(cell)
    hours = {runs: sum(costs[run].usual for run in runs) / HOUR for runs in same}
    lines = []
    for runs in sorted(hours, key=hours.__getitem__, reverse=True)[:DEAREST]:
        cells = same[runs]
        others = f" and {len(cells) - 1} more of the same runs" if len(cells) > 1 else ""
        money = [] if price is None else [price * hours[runs]]
        lines.append([f"{cells[0].address}{others}", len(runs), hours[runs], *money])
    heads = [f"the {len(lines)} dearest cells", "runs", "h", *([] if price is None else ["$"])]
    return [tabulate(lines, heads, floatfmt=",.2f")] if lines else []


def within(budget: float, tables: Mapping[str, Sequence[str]], costs: Mapping[str, Cost]) -> list[str]:
    """Which tables so many hours pay for: the cheapest first, each for what those before it have not paid for already."""
    paid: set[str] = set()
    spent, lines, left = 0.0, [], dict(tables)

    def price(name: str) -> float:
        return sum(costs[run].usual for run in left[name] if run not in paid) / HOUR

    while left:
        name = min(left, key=price)
        hours = price(name)
        if spent + hours > budget:
            break
        spent += hours
        paid.update(left.pop(name))
        lines.append(f"  {name}: {hours:,.2f} h more")
    rest = f"; not {', '.join(left)}" if left else ""
    return [f"{budget:,.2f} hours pay for {len(lines)} of {len(tables)} tables, {spent:,.2f} h in all{rest}", *lines]
