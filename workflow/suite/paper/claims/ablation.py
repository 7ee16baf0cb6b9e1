"""Claims about last batch normalization (LBN), score scale and initialization."""

from collections.abc import Iterable

from workflow.suite.paper.claims.amount import Amount, mean
from workflow.suite.paper.claims.claim import Claim, Finding, claim
from workflow.suite.paper.claims.condition import above, every, not_below
from workflow.suite.paper.claims.evidence import Evidence
from workflow.suite.paper.claims.select import COMPARABLE, MAIN, ours, rivals, within


def by_column(e: Evidence, table: str, key: str) -> dict[str, dict[float, Amount]]:
    """An ablation: column id -> row setting (a, or p) -> number."""
    columns: dict[str, dict[float, Amount]] = {}
    for line in e.numbers(table=table).itertuples():
        columns.setdefault(line.column, {})[getattr(line, key)] = line.amount
    return columns


def scales(e: Evidence) -> dict[str, dict[float, Amount]]:
    """Robust accuracy by LBN and a."""
    return by_column(e, "bn_ablation", "a")


def gains(columns: dict[str, dict[float, Amount]], on: str, off: str) -> dict[float, Amount]:
    """One column minus another, where both have a number."""
    return {key: value - columns[off][key] for key, value in columns[on].items() if key in columns[off]}


def by_p(changes: dict[float, Amount]) -> str:
    return ", ".join(f"p={p} {value:+.2f}" for p, value in changes.items())


def spread(values: Iterable[Amount]) -> Amount:
    """Largest minus smallest, taken as they stand."""
    values = list(values)
    return max(values) - min(values)


@claim("C11", "4.1", "LBN greatly improves robust accuracy", "for every a, LBN is above no LBN")
def lbn_improves(e: Evidence) -> Finding:
    gain = gains(scales(e), "lbn", "no-lbn")
    return every(map(above, gain.values())), "gains " + ", ".join(f"a={a} {value:+.2f}" for a, value in gain.items())


@claim("C12", "4.1", "With LBN the score scale hardly matters", "the range over a is smaller with LBN")
def lbn_steadies(e: Evidence) -> Finding:
    ranges = {name: spread(values.values()) for name, values in scales(e).items()}
    return above(ranges["no-lbn"], ranges["lbn"]), f"{ranges['lbn']:.2f} with, {ranges['no-lbn']:.2f} without"


@claim(
    "C13",
    "3.3, 4.1",
    "With LBN the score scale hardly matters, at any p",
    "at r = 0.99, changing a from 0.01 (grid) to 0.001 (ablation) moves no p by more than the range over a with LBN at p = 0.1",
    reading="cross-check",
)
def steady_at_any_p(e: Evidence) -> Finding:
    at_hundredth = e.numbers(table="sp_ratio", sparsity=0.99).set_index("p")["amount"].to_dict()
    at_thousandth = by_column(e, "main_ablation", "p")["binary-lbn"]
    change = {p: value - at_hundredth[p] for p, value in at_thousandth.items() if p in at_hundredth}
    allowed = spread(scales(e)["lbn"].values())
    return every(not_below(allowed, abs(value)) for value in change.values()), f"allowed {allowed:.2f}; {by_p(change)}"


@claim(
    "C14",
    "checklist",
    "Variation over initializations is small against the lead over the baselines",
    "the range over a with LBN is below the lead over the best compressed binary rival on CIFAR10",
)
def variation_is_small(e: Evidence) -> Finding:
    mine, others = ours(e, MAIN, "CIFAR10"), rivals(e, MAIN, "CIFAR10", "binary", section="compressed")
    width = spread(scales(e)["lbn"].values())
    text = f"{width:.2f} vs {mine - others.iloc[0]:.2f}; a range over a is not a variance over seeds"
    return every(above(mine - other, width) for other in others), text


def best_each(id: str, where: str, table: str, kind: str) -> Claim:
    @claim(
        id,
        where,
        f"Binary initialization is comparable with Signed KC ({kind}), each at its best p",
        f"with LBN, the best of the two columns differ by at most {COMPARABLE:g} points",
        reading="vague",
    )
    def test(e: Evidence) -> Finding:
        top = {name: max(values.values()) for name, values in by_column(e, table, "p").items()}
        near, limit = within([abs(top["binary-lbn"] - top["kc-lbn"])])
        return near, f"LBN {top['binary-lbn']:.2f} vs {top['kc-lbn']:.2f}; no LBN {top['binary']:.2f} vs {top['kc']:.2f}; {limit}"

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
        change = gains(by_column(e, table, "p"), "binary-lbn", "kc-lbn")
        near, limit = within(map(abs, change.values()))
        return near, f"{by_p(change)}; {limit}"

    return test


def lbn_helps(id: str, where: str, table: str, column: str, name: str, kind: str) -> Claim:
    @claim(id, where, f"LBN improves {name} ({kind})", "LBN is above no LBN at every p", reading="strict")
    def test(e: Evidence) -> Finding:
        gain = gains(by_column(e, table, "p"), f"{column}-lbn", column)
        worse = {p: value for p, value in gain.items() if value <= 0}
        text = f"{len(gain) - len(worse)} of {len(gain)}, mean gain {mean(gain.values()):+.2f}"
        return every(map(above, gain.values())), text + (f"; exceptions {by_p(worse)}" if worse else "")

    return test


robust_best = best_each("C15", "4.1", "main_ablation", "robust")
robust_equal = equal_p("C16", "4.1", "main_ablation", "robust")
robust_kc = lbn_helps("C17", "4.1", "main_ablation", "kc", "Signed KC", "robust")
robust_binary = lbn_helps("C18", "3.3", "main_ablation", "binary", "binary initialization", "robust")
vanilla_best = best_each("C20", "D.2.1", "vanilla_ablation", "vanilla")
vanilla_equal = equal_p("C21", "D.2.1", "vanilla_ablation", "vanilla")
vanilla_kc = lbn_helps("C22", "D.2.1", "vanilla_ablation", "kc", "Signed KC", "vanilla")
vanilla_binary = lbn_helps("C23", "D.2.1", "vanilla_ablation", "binary", "binary initialization", "vanilla")
