"""Claims about last batch normalization (LBN), score scale and initialization."""

import pandas as pd

from workflow.suite.paper.claims.claim import Claim, Finding, claim
from workflow.suite.paper.claims.evidence import Evidence
from workflow.suite.paper.claims.select import COMPARABLE, MAIN, ours, rivals, within


def scales(e: Evidence) -> pd.DataFrame:
    """Robust accuracy by a (rows) and LBN (columns)."""
    return e.numbers(table="bn_ablation").pivot(index="a", columns="column", values="value")


def columns(e: Evidence, table: str) -> pd.DataFrame:
    """An ablation by p (rows) and column id."""
    return e.numbers(table=table).pivot(index="p", columns="column", values="value")


def by_p(difference: pd.Series) -> str:
    return ", ".join(f"p={p} {value:+.2f}" for p, value in difference.items())


def spread(values: pd.Series) -> float:
    return float(values.max() - values.min())


@claim("C11", "4.1", "LBN greatly improves robust accuracy", "for every a, LBN is above no LBN")
def lbn_improves(e: Evidence) -> Finding:
    gain = scales(e)["lbn"] - scales(e)["no-lbn"]
    return bool((gain > 0).all()), "gains " + ", ".join(f"a={a} {value:+.2f}" for a, value in gain.items())


@claim("C12", "4.1", "With LBN the score scale hardly matters", "the range over a is smaller with LBN")
def lbn_steadies(e: Evidence) -> Finding:
    found = scales(e).apply(spread)
    return bool(found["lbn"] < found["no-lbn"]), f"{found['lbn']:.2f} with, {found['no-lbn']:.2f} without"


@claim(
    "C13",
    "3.3, 4.1",
    "With LBN the score scale hardly matters, at any p",
    "at r = 0.99, changing a from 0.01 (grid) to 0.001 (ablation) moves no p by more than the range over a with LBN at p = 0.1",
    reading="cross-check",
)
def steady_at_any_p(e: Evidence) -> Finding:
    at_hundredth = e.numbers(table="sp_ratio", sparsity=0.99).set_index("p")["value"]
    change = columns(e, "main_ablation")["binary-lbn"] - at_hundredth
    allowed = spread(scales(e)["lbn"])
    return bool((change.abs() <= allowed).all()), f"allowed {allowed:.2f}; {by_p(change)}"


@claim(
    "C14",
    "checklist",
    "Variation over initializations is small against the lead over the baselines",
    "the range over a with LBN is below the lead over the best compressed binary rival on CIFAR10",
)
def variation_is_small(e: Evidence) -> Finding:
    lead = ours(e, MAIN, "CIFAR10") - rivals(e, MAIN, "CIFAR10", "binary", section="compressed").iloc[0]
    found = spread(scales(e)["lbn"])
    return found < lead, f"{found:.2f} vs {lead:.2f}; a range over a is not a variance over seeds"


def best_each(id: str, where: str, table: str, kind: str) -> Claim:
    @claim(
        id,
        where,
        f"Binary initialization is comparable with Signed KC ({kind}), each at its best p",
        f"with LBN, the best of the two columns differ by at most {COMPARABLE:g} points",
        reading="vague",
    )
    def test(e: Evidence) -> Finding:
        top = columns(e, table).max()
        holds, limit = within([abs(top["binary-lbn"] - top["kc-lbn"])])
        return holds, f"LBN {top['binary-lbn']:.2f} vs {top['kc-lbn']:.2f}; no LBN {top['binary']:.2f} vs {top['kc']:.2f}; {limit}"

    return test


def equal_p(id: str, where: str, table: str, kind: str) -> Claim:
    @claim(
        id,
        where,
        f"Binary initialization is comparable with Signed KC ({kind}), at equal p",
        f"with LBN, they differ by at most {COMPARABLE:g} points at every p",
        reading="vague",
    )
    def test(e: Evidence) -> Finding:
        cells = columns(e, table)
        change = cells["binary-lbn"] - cells["kc-lbn"]
        holds, limit = within(change.abs())
        return holds, f"{by_p(change)}; {limit}"

    return test


def lbn_helps(id: str, where: str, table: str, column: str, name: str, kind: str) -> Claim:
    @claim(id, where, f"LBN improves {name} ({kind})", "LBN is above no LBN at every p", reading="strict")
    def test(e: Evidence) -> Finding:
        found = columns(e, table)
        gain = found[f"{column}-lbn"] - found[column]
        worse = gain[gain <= 0]
        text = f"{len(gain) - len(worse)} of {len(gain)}, mean gain {gain.mean():+.2f}"
        return worse.empty, text + ("" if worse.empty else f"; exceptions {by_p(worse)}")

    return test


robust_best = best_each("C15", "4.1", "main_ablation", "robust")
robust_equal = equal_p("C16", "4.1", "main_ablation", "robust")
robust_kc = lbn_helps("C17", "4.1", "main_ablation", "kc", "Signed KC", "robust")
robust_binary = lbn_helps("C18", "3.3", "main_ablation", "binary", "binary initialization", "robust")
vanilla_best = best_each("C20", "D.2.1", "vanilla_ablation", "vanilla")
vanilla_equal = equal_p("C21", "D.2.1", "vanilla_ablation", "vanilla")
vanilla_kc = lbn_helps("C22", "D.2.1", "vanilla_ablation", "kc", "Signed KC", "vanilla")
vanilla_binary = lbn_helps("C23", "D.2.1", "vanilla_ablation", "binary", "binary initialization", "vanilla")
