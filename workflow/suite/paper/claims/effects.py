"""Claims about what one change does: LBN, the exponent p, TRADES instead of AT."""

from collections.abc import Callable

import pandas as pd

from workflow.suite.paper.claims.amount import Amount
from workflow.suite.paper.claims.claim import Claim, Finding, claim
from workflow.suite.paper.claims.condition import Condition, MoreThan, above, every, not_below
from workflow.suite.paper.claims.evidence import Evidence
from workflow.suite.paper.claims.select import COMPARABLE, COMPLETE, MAIN, ROBUST, counted, effects, signed, within
from workflow.suite.results.names import OURS

SPECIAL = ("RST", *OURS)


def lbn(e: Evidence, tables=ROBUST, **equal: object):
    """Effects of LBN on the baselines."""
    changes = effects(e, tables, of="lbn", on=True, off=False, **equal)
    return changes[[name.split("/")[0] not in OURS for name in changes.index]]


def in_every(changes: pd.Series, condition: Callable[[Amount], Condition]) -> Finding:
    """The condition holds of every change."""
    conditions, text = counted(changes, map(condition, changes))
    return every(conditions), text


def falls(change: Amount) -> Condition:
    return above(-change)


def no_gain(change: Amount) -> Condition:
    return not_below(-change)


def others(e: Evidence) -> list[str]:
    """Every baseline but RST."""
    return [name for name in e.cells["method"].unique() if name not in SPECIAL]


@claim("C35", "4.2", "LBN improves no baseline but RST", "no pair of robust cells that differ in LBN alone improves")
def lbn_improves_none(e: Evidence) -> Finding:
    changes = lbn(e, method=others(e)).sort_values(ascending=False, kind="stable")
    better = changes[[change > 0 for change in changes]]
    text = f"{len(better)} of {len(changes)} pairs improve" + ("" if better.empty else f": {signed(better, 6)}")
    return every(map(no_gain, changes)), text


@claim("C36", "4.2", "LBN hurts full-precision baselines", "every full-precision pair is lower with LBN, RST aside")
def lbn_hurts_fp(e: Evidence) -> Finding:
    return in_every(lbn(e, method=others(e), precision="fp"), falls)


@claim(
    "C37", "D.2.2", "LBN does not improve full-precision baselines of the complete table", "every full-precision pair is lower, RST aside"
)
def lbn_hurts_fp_complete(e: Evidence) -> Finding:
    return in_every(lbn(e, [COMPLETE], method=others(e), precision="fp"), falls)


@claim("C38", "D.2.2", "LBN mostly helps binary FlyingBird(+), BCS and HYDRA", "more than half of the pairs of the complete table improve")
def lbn_helps_binary(e: Evidence) -> Finding:
    changes = lbn(e, [COMPLETE], method=["FlyingBird", "FlyingBird+", "BCS", "HYDRA"], precision="binary")
    conditions, text = counted(changes, map(above, changes))
    return MoreThan(len(changes) / 2, tuple(conditions)), text


@claim("C39", "D.2.2", "LBN may not help binary ATMC", "no pair of the complete table improves", reading="vague")
def lbn_useless_for_atmc(e: Evidence) -> Finding:
    return in_every(lbn(e, [COMPLETE], method="ATMC", precision="binary"), no_gain)


@claim("C40", "4.2", "LBN improves RST, which is why it was added", "every pair of RST in the robust tables improves")
def lbn_improves_rst(e: Evidence) -> Finding:
    return in_every(effects(e, ROBUST, of="lbn", on=True, off=False, method="RST"), above)


def adaptive(id: str, where: str, text: str, rule: str, tables: tuple[str, ...], off: object, **equal: object) -> Claim:
    @claim(id, where, text, f"{rule}: p = 0.1 is above {'global pruning' if off == 'global' else f'p = {off}'}")
    def test(e: Evidence) -> Finding:
        return in_every(effects(e, tables, of="p", on=0.1, off=off, **equal), above)

    return test


over_fixed = adaptive("C41", "4.2, D.2.2", "p = 0.1 is always better than p = 1.0", "in every pair of the complete table", (COMPLETE,), 1.0)
over_global = adaptive(
    "C42", "4.2", "p = 0.1 is consistently better than global pruning", "in every ATMC pair of the robust tables", ROBUST, "global"
)
added_for_atmc = adaptive(
    "C43", "4.2", "Adaptive pruning was added to ATMC because it helps", "in every pair of the main table", (MAIN,), "global", method="ATMC"
)
added_for_hydra = adaptive(
    "C44",
    "4.2",
    "Adaptive pruning was added to HYDRA because it helps",
    "in every RN34 pair of the complete table",
    (COMPLETE,),
    1.0,
    method="HYDRA",
    lbn=False,
)
on_cifar100 = adaptive(
    "C45",
    "4.2",
    "The p chosen on CIFAR10 serves CIFAR100",
    "for both variants of ours on CIFAR100",
    (COMPLETE,),
    1.0,
    method=list(OURS),
    group="CIFAR100",
)


@claim("C46", "4.2", "The p chosen on CIFAR10 serves ImageNet100", "p = 0.1 is above every other p that was run there")
def on_imagenet100(e: Evidence) -> Finding:
    best: dict[float, Amount] = {}
    for line in e.numbers(method=list(OURS), group="ImageNet100", metric="robust_acc").itertuples():
        best[line.p] = max(best.get(line.p, line.amount), line.amount)
    if len(best) < 2 or 0.1 not in best:
        raise e.lacks("number", f"only p = {', '.join(map(str, best))}")
    higher = [above(best[0.1], value) for p, value in best.items() if p != 0.1]
    return every(higher), ", ".join(f"p={p} {value:.2f}" for p, value in sorted(best.items()))


def trades(e: Evidence, precision: str):
    """TRADES minus AT on the same network."""
    return effects(e, [COMPLETE], of="method", on="TRADES", off="AT", precision=precision)


@claim(
    "C59",
    "D.2.2",
    "TRADES is competitive in full precision",
    f"at most {COMPARABLE:g} points below AT in every full-precision cell of the complete table",
    reading="vague",
)
def trades_competes(e: Evidence) -> Finding:
    gain = trades(e, "fp")
    near, limit = within(-gain)
    return near, f"{counted(gain, (not_below(change, -COMPARABLE) for change in gain))[1]}; {limit}"


@claim("C60", "D.2.2", "TRADES degrades with binary weights", "below AT in every binary cell of the complete table")
def trades_degrades(e: Evidence) -> Finding:
    return in_every(trades(e, "binary"), falls)
