"""Learning curves as text: a line of bars per accuracy, and a table of some epochs."""

from collections.abc import Sequence

from tabulate import tabulate

from workflow.suite.results.history import Course
from workflow.suite.tables.caption import percent

BARS = "▁▂▃▄▅▆▇█"
BROAD, LONG = 60, 12  # bars of a line, lines of a table
CURVES = {"val_robust": "validation, under attack", "val_clean": "validation, clean", "train_acc": "training, under attack"}
COLUMNS = {"lr": "rate", "train_loss": "loss", "train_acc": "training", "val_clean": "clean", "val_robust": "robust"}


def of_courses(courses: Sequence[Course]) -> str:
    """The trainings of a Run, in their order, on one scale of bars."""
    top = max(record[key] for course in courses for record in course.records for key in CURVES)
    return "\n\n".join(_course(course, top) for course in courses)


def _course(course: Course, top: float) -> str:
    records, last = course.records, len(course.records)
    lines = [f"{course.run.name} ({course.title}): {last} epoch{'s' if last > 1 else ''}"]
    for key, label in CURVES.items():
        values = [record[key] for record in records]
        lines.append(f"  {label:<24}  {bars(values, top)}  {percent(values[-1])} % at the end, at most {percent(max(values))} %")
    entries = [_entries(records[epoch - 1], "*" if epoch == course.best else "") for epoch in chosen(last, course.best)]
    grid = tabulate(entries, ["epoch", *COLUMNS.values(), ""], disable_numparse=True, stralign="right")
    note = [] if course.best is None else ["* the epoch that was kept"]
    return "\n".join([*lines, "", *(f"  {line}" for line in (*grid.splitlines(), *note))])


def bars(values: Sequence[float], top: float, broad: int = BROAD) -> str:
    """A bar per value, or per stretch of a long curve (its mean); the highest bar is `top`."""
    count = min(len(values), broad)
    parts = [values[len(values) * place // count : len(values) * (place + 1) // count] for place in range(count)]
    means = [sum(part) / len(part) for part in parts]
    return "".join(BARS[min(int(mean / top * len(BARS)), len(BARS) - 1)] if top > 0 else BARS[0] for mean in means)


def chosen(last: int, best: int | None, long: int = LONG) -> list[int]:
    """The epochs to show, from 1: all of a short training, else some at equal distances; always the last, and the one that was kept."""
    count = min(last, long)
    some = {1 + round(place * (last - 1) / max(count - 1, 1)) for place in range(count)}
    return sorted(some | {last} | ({best} if best else set()))


def _entries(record: dict[str, float], mark: str) -> list[str]:
    rate, loss = (f"{record[key]:.3g}" if key in record else "" for key in ("lr", "train_loss"))
    return [str(record["epoch"] + 1), rate, loss, *(percent(record[key]) for key in list(COLUMNS)[2:]), mark]
