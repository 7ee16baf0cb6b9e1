"""What claims ask of comparison tables: our number, the rivals' numbers, differences between rows that differ in one thing."""

from collections.abc import Iterable

import pandas as pd

from workflow.suite.paper.claims.evidence import Evidence, NoVerdict
from workflow.suite.results import names
from workflow.suite.results.names import OURS

MAIN, CLEAN, VANILLA = "main_comparison", "comparison_vanilla", "vanilla"
COMPLETE, OTHER_NETS = "complete_comparison", "comparison_rn18_rn50"
ROBUST = (MAIN, COMPLETE, OTHER_NETS)  # in the order in which a cell that stands in two of them is taken
DATASETS = ("CIFAR10", "CIFAR100", "ImageNet100")
SETTINGS = (*((MAIN, dataset) for dataset in DATASETS), (OTHER_NETS, "RN18"), (OTHER_NETS, "RN50"))
# Points within which we read "comparable", "competitive" and "on par", everywhere; 10 000 test images tell 1.4 points apart at best.
COMPARABLE = 2.0


def ours(e: Evidence, table: str, group: str, *, fast: bool = False) -> float:
    """Our method at p = 0.1; where both variants are one printed cell, that cell."""
    found = e.numbers(table=table, group=group, precision="binary", p=0.1, method=list(OURS)).set_index("method")["value"]
    if found.empty:
        raise NoVerdict("NOT-IN-TABLES", f"{table} has no number of ours for {group}")
    return float(found.get(OURS[fast], found.iloc[-1]))


def rivals(e: Evidence, table: str, group: str, precision: str, *, section: str | None = None) -> pd.Series:
    """The other methods' numbers of a column by "method/network", best first; `section` narrows them to compressed or reference rows."""
    wanted = {"table": table, "group": group, "precision": precision} | ({"section": section} if section else {})
    found = e.numbers(**wanted)
    found = found[~found["method"].isin(OURS)].sort_values("value", ascending=False, kind="stable")
    if found.empty:
        raise NoVerdict("NOT-IN-TABLES", f"{table} has no rivals for {group}, {precision}")
    return pd.Series(found["value"].to_numpy(), index=(found["method"] + "/" + found["network"]).to_list())


def versus(name: str, mine: float, others: pd.Series) -> str:
    """Our number against the best other one, in words."""
    sign = " (lower)" if mine < others.iloc[0] else ""
    return f"{name} {mine:.2f} vs {others.iloc[0]:.2f} {others.index[0]}{sign}"


def beats(
    e: Evidence, places: Iterable[tuple[str, str]], precision: str, *, section: str | None = None, fast: bool = False
) -> list[tuple[float, str]]:
    """Our margin over the best rival in each (table, group), with words."""
    found = []
    for table, group in places:
        mine, others = ours(e, table, group, fast=fast), rivals(e, table, group, precision, section=section)
        found.append((mine - others.iloc[0], versus(group, mine, others)))
    return found


def within(gaps: Iterable[float]) -> tuple[bool, str]:
    """Whether no gap is wider than COMPARABLE, and from how many points on that would be so: the threshold is ours, not the paper's."""
    widest = max(0.0, *gaps)
    return widest <= COMPARABLE, f"holds from {widest:.2f} points on"


def words(found: Iterable[tuple[float, str]]) -> str:
    return "; ".join(text for _, text in found)


def effects(e: Evidence, tables: Iterable[str], *, of: str, on: object, off: object, **equal: object) -> pd.Series:
    """Number with minus number without something, for rows of one table that are alike otherwise; a pair in two tables counts once.

    `of` is the setting that differs, `on` and `off` its two values; the index reads method/network/group/precision.
    """
    same = [key for key in ("method", "arch", "lbn", "p", "group", "precision") if key != of]
    pairs: dict[tuple, float] = {}
    for table in tables:
        found = e.numbers(table=table, **equal)
        found = found.assign(**{key: found[key].astype(object).where(found[key].notna(), "-") for key in same})
        without = found[found[of] == off].set_index(same)["value"]
        for key, value in found[found[of] == on].set_index(same)["value"].items():
            if key in without.index:
                pairs.setdefault(key, float(value - without[key]))
    if not pairs:
        raise NoVerdict("NOT-IN-TABLES", "no two rows differ in that alone")
    return pd.Series(list(pairs.values()), index=["/".join(map(str, _named(dict(zip(same, key, strict=True))))) for key in pairs])


def _named(key: dict[str, object]) -> list[object]:
    network = names.network({"arch": key["arch"], "lbn": key.get("lbn") is True})
    p = key.get("p", "-")
    method = [key["method"]] if "method" in key else []
    group = [] if str(key["group"]).startswith("RN") else [key["group"]]
    return [*method, network, *([] if p == "-" else [f"p={p}"]), *group, key["precision"]]


def signed(found: pd.Series, limit: int = 8) -> str:
    """Differences with their signs."""
    parts = [f"{name} {value:+.2f}" for name, value in found.items()]
    return "; ".join(parts[:limit]) + (f"; and {len(parts) - limit} more" if len(parts) > limit else "")


def counted(found: pd.Series, holds: pd.Series) -> tuple[bool, str]:
    """A verdict of "in every pair", with the exceptions."""
    text = f"{int(holds.sum())} of {len(found)}"
    return bool(holds.all()), text if holds.all() else f"{text}; exceptions {signed(found[~holds])}"
