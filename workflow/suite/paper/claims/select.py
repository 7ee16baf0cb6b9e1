"""What claims ask of comparison tables: our number, the rivals' numbers, differences between rows that differ in one thing."""

from collections.abc import Iterable

import pandas as pd

from workflow.suite.paper.claims.amount import Amount
from workflow.suite.paper.claims.condition import Condition, above, every, not_below
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
Finding = tuple[Condition, str]


def ours(e: Evidence, table: str, group: str, *, fast: bool = False) -> Amount:
    """Our method at p = 0.1; where both variants are one printed cell, that cell."""
    mine = e.numbers(table=table, group=group, precision="binary", p=0.1, method=list(OURS)).set_index("method")["amount"]
    if mine.empty:
        raise e.lacks("number", f"{table} has no number of ours for {group}")
    return mine.get(OURS[fast], mine.iloc[-1])


def rivals(e: Evidence, table: str, group: str, precision: str, *, section: str | None = None) -> pd.Series:
    """The other methods' numbers of a column by "method/network", best first; `section` narrows them to compressed or reference rows."""
    wanted = {"table": table, "group": group, "precision": precision} | ({"section": section} if section else {})
    others = e.numbers(**wanted)
    others = others[~others["method"].isin(OURS)].sort_values("value", ascending=False, kind="stable")
    if others.empty:
        raise e.lacks("number", f"{table} has no rivals for {group}, {precision}")
    return pd.Series(others["amount"].to_numpy(), index=(others["method"] + "/" + others["network"]).to_list(), dtype=object)


def versus(name: str, mine: Amount, others: pd.Series) -> str:
    """Our number against the best other one, in words."""
    sign = " (lower)" if mine < others.iloc[0] else ""
    return f"{name} {mine:.2f} vs {others.iloc[0]:.2f} {others.index[0]}{sign}"


def beats(
    e: Evidence, places: Iterable[tuple[str, str]], precision: str, *, section: str | None = None, fast: bool = False
) -> list[tuple[list[Amount], str]]:
    """Our margins over every rival in each (table, group), the smallest first, with words about the best rival; of a part of the evidence,
    those places that it has numbers of."""
    results = []
    for table, group in places:
        try:
            mine, others = ours(e, table, group, fast=fast), rivals(e, table, group, precision, section=section)
        except NoVerdict:
            if not e.part:
                raise
            continue
        results.append(([mine - other for other in others], versus(group, mine, others)))
    if not results:
        raise e.lacks("results", "no place has numbers of both")
    return results


def ahead(places: Iterable[tuple[list[Amount], str]]) -> Finding:
    """Ahead of every rival in every place."""
    places = list(places)
    return every(above(margin) for margins, _ in places for margin in margins), words(places)


def within(gaps: Iterable[Amount]) -> Finding:
    """No gap is wider than COMPARABLE; and from how many points on that would be so: the threshold is ours, not the paper's."""
    gaps = list(gaps)
    widest = max(0.0, *map(float, gaps))
    return every(not_below(COMPARABLE, gap) for gap in gaps), f"holds from {widest:.2f} points on"


def words(places: Iterable[tuple[object, str]]) -> str:
    return "; ".join(text for _, text in places)


def effects(e: Evidence, tables: Iterable[str], *, of: str, on: object, off: object, **equal: object) -> pd.Series:
    """Number with minus number without something, for rows of one table that are alike otherwise; a pair in two tables counts once.

    `of` is the setting that differs, `on` and `off` its two values; the index reads method/network/group/precision.
    """
    same = [key for key in ("method", "arch", "lbn", "p", "group", "precision") if key != of]
    pairs: dict[tuple, Amount] = {}
    for table in tables:
        lines = e.numbers(table=table, **equal)
        lines = lines.assign(**{key: lines[key].astype(object).where(lines[key].notna(), "-") for key in same})
        without = lines[lines[of] == off].set_index(same)["amount"].to_dict()
        for key, amount in lines[lines[of] == on].set_index(same)["amount"].items():
            if key in without:
                pairs.setdefault(key, amount - without[key])
    if not pairs:
        raise e.lacks("number", "no two rows differ in that alone")
    index = ["/".join(map(str, _named(dict(zip(same, key, strict=True))))) for key in pairs]
    return pd.Series(list(pairs.values()), index=index, dtype=object)


def _named(key: dict[str, object]) -> list[object]:
    network = names.network({"arch": key["arch"], "lbn": key.get("lbn") is True})
    p = key.get("p", "-")
    method = [key["method"]] if "method" in key else []
    group = [] if str(key["group"]).startswith("RN") else [key["group"]]
    return [*method, network, *([] if p == "-" else [f"p={p}"]), *group, key["precision"]]


def signed(changes: pd.Series, limit: int = 8) -> str:
    """Differences with their signs."""
    parts = [f"{name} {value:+.2f}" for name, value in changes.items()]
    return "; ".join(parts[:limit]) + (f"; and {len(parts) - limit} more" if len(parts) > limit else "")


def counted(changes: pd.Series, conditions: Iterable[Condition]) -> tuple[list[Condition], str]:
    """Conditions, one per change; and how many hold of the numbers as they are, with the exceptions."""
    conditions = list(conditions)
    holds = [bool(condition.answer(lambda leaf: leaf.plain)) for condition in conditions]
    text = f"{sum(holds)} of {len(holds)}"
    return conditions, text if all(holds) else f"{text}; exceptions {signed(changes[[not held for held in holds]])}"
