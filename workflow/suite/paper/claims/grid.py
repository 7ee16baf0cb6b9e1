"""Claims about the grid of pruning rates and strategies."""

import pandas as pd

from workflow.suite.paper.claims.claim import Finding, claim
from workflow.suite.paper.claims.evidence import Evidence, NoVerdict

CURVES = {0.99: ("r99", 0.1), 0.5: ("r5", 1.0)}  # rate -> column, best p; the paper draws these p
DRAWN = {0.1: "p01", 0.5: "p05", 0.8: "p08", 1.0: "p10"}


def grid(e: Evidence) -> pd.DataFrame:
    """Robust accuracy by p (rows) and r (columns)."""
    return e.numbers(table="sp_ratio").pivot(index="p", columns="sparsity", values="value")


def best(values: pd.Series) -> list:
    """Every index that has the largest value."""
    return values.index[values == values.max()].to_list()


@claim("C01", "4.1", "The best cell of the grid is r = 0.99, p = 0.1", "the one largest of the 49 cells is (0.99, 0.1)")
def best_cell(e: Evidence) -> Finding:
    values = grid(e).unstack()
    return best(values) == [(0.99, 0.1)], f"largest {values.max():.2f} at r, p = {best(values)}"


@claim("C02", "4.1", "At p = 1.0 the best rate is r = 0.8", "the one largest of the row p = 1.0 is at r = 0.8")
def best_fixed_rate(e: Evidence) -> Finding:
    row = grid(e).loc[1.0].sort_values(ascending=False)
    return best(row) == [0.8], f"{row.iloc[0]:.2f} at r = {row.index[0]}, then {row.iloc[1]:.2f} at r = {row.index[1]}"


@claim("C03", "4.1", "The larger r, the smaller the best p", "the best p does not increase with r (of tied ones, any may be taken)")
def smaller_p_for_larger_r(e: Evidence) -> Finding:
    values, bound, holds, found = grid(e), float("inf"), True, []
    for rate in sorted(values.columns):
        tied = best(values[rate])
        allowed = [p for p in tied if p <= bound]
        holds, bound = holds and bool(allowed), max(allowed, default=min(tied))
        found.append(f"{rate}: {bound}")
    return holds, "best p by r " + ", ".join(found)


@claim("C04", "3.2", "p = 1 fails at large r", "at each r >= 0.95, p = 1.0 is among the two worst of the column")
def fixed_rate_fails(e: Evidence) -> Finding:
    ranks = {rate: int((column < column[1.0]).sum()) + 1 for rate, column in grid(e).items() if rate >= 0.95}
    return all(rank <= 2 for rank in ranks.values()), "place from below " + ", ".join(f"r={rate}: {rank}" for rate, rank in ranks.items())


@claim("C05", "3.2", "p = 0 fails at small r", "at each r <= 0.9, p = 0 is the worst of the column")
def fixed_number_fails(e: Evidence) -> Finding:
    columns = {rate: column for rate, column in grid(e).items() if rate <= 0.9}
    holds = all((column.drop(0.0) > column[0.0]).all() for column in columns.values())
    return holds, ", ".join(f"r={rate}: {column[0.0]:.2f}" for rate, column in columns.items())


@claim(
    "C06",
    "4.1",
    "The best adaptive setting beats the best fixed rate, and prunes more",
    "(0.99, 0.1) is above every cell of p = 1.0, whose best rate is below 0.99",
)
def adaptive_beats_fixed(e: Evidence) -> Finding:
    values = grid(e)
    mine, row = values.loc[0.1, 0.99], values.loc[1.0]
    return mine > row.max() and max(best(row)) < 0.99, f"{mine:.2f} vs {row.max():.2f} at r = {best(row)} ({mine - row.max():+.2f})"


@claim(
    "C07", "4.1", "For robust accuracy the best fixed rate lies above the 0.5 known for vanilla training", "best r at p = 1.0 exceeds 0.5"
)
def robust_wants_more_pruning(e: Evidence) -> Finding:
    row = grid(e).loc[1.0]
    return min(best(row)) > 0.5, f"best r = {best(row)}; r = 0.5 is {row.max() - row[0.5]:.2f} lower"


@claim("C08", "D.2.6", "The best p is 0.1 at r = 0.99 and 1.0 at r = 0.5", "the one largest of each of the two columns")
def best_p(e: Evidence) -> Finding:
    values = grid(e)
    found = {rate: best(values[rate]) for rate in CURVES}
    return found == {0.99: [0.1], 0.5: [1.0]}, ", ".join(f"r={rate}: p = {ps}" for rate, ps in found.items())


@claim(
    "C09",
    "4.1, D.2.6",
    "A well chosen p makes training stable, another one unstable",
    "in the second half of training, the epoch-to-epoch changes of validation robust accuracy have a smaller standard deviation for the"
    " best p than for each other drawn p",
)
def stable_training(e: Evidence) -> Finding:
    holds, found = True, []
    for rate, (column, good) in CURVES.items():
        spread = {}
        for p, row in DRAWN.items():
            curve = pd.Series(e.curve(f"sp_ratio.{row}.{column}"))
            steps = curve.iloc[len(curve) // 2 :].diff().dropna()
            if len(steps) < 3:
                raise NoVerdict("NOT-TESTABLE", f"only {len(curve)} epochs")
            spread[p] = 100 * float(steps.std())
        holds = holds and all(spread[good] < value for p, value in spread.items() if p != good)
        found.append(f"r={rate}: " + ", ".join(f"p={p} {value:.2f}" for p, value in spread.items()))
    return holds, "; ".join(found)
