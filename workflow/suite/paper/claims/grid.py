"""Claims about the grid of pruning rates and strategies."""

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass

import pandas as pd

from workflow.suite.paper.claims.amount import Amount
from workflow.suite.paper.claims.claim import Finding, claim
from workflow.suite.paper.claims.condition import Answer, Condition, Leaf, above, at_most, every, not_below, some
from workflow.suite.paper.claims.evidence import Evidence

CURVES = {0.99: ("r99", 0.1), 0.5: ("r5", 1.0)}  # rate -> column, best p; the paper draws these p
DRAWN = {0.1: "p01", 0.5: "p05", 0.8: "p08", 1.0: "p10"}


def grid(e: Evidence) -> dict[tuple[float, float], Amount]:
    """Robust accuracy by r and p."""
    return e.numbers(table="sp_ratio").set_index(["sparsity", "p"])["amount"].to_dict()


def row(e: Evidence, p: float) -> dict[float, Amount]:
    """Robust accuracy by r at one p."""
    return {r: amount for (r, other), amount in grid(e).items() if other == p}


def column(e: Evidence, r: float) -> dict[float, Amount]:
    """Robust accuracy by p at one r."""
    return {p: amount for (other, p), amount in grid(e).items() if other == r}


def rates(e: Evidence) -> list[float]:
    return sorted({r for r, _ in grid(e)})


def best(values: dict) -> list:
    """Every key that has the largest value."""
    largest = max(values.values())
    return [key for key, value in values.items() if value == largest]


def largest(values: dict[Hashable, Amount], key: Hashable) -> Condition:
    """This one is above every other."""
    mine = values[key]
    return every(above(mine, value) for other, value in values.items() if other != key)


@claim("C01", "4.1", "The best cell of the grid is r = 0.99, p = 0.1", "the one largest of the 49 cells is (0.99, 0.1)")
def best_cell(e: Evidence) -> Finding:
    values = grid(e)
    return largest(values, (0.99, 0.1)), f"largest {max(values.values()):.2f} at r, p = {best(values)}"


@claim("C02", "4.1", "At p = 1.0 the best rate is r = 0.8", "the one largest of the row p = 1.0 is at r = 0.8")
def best_fixed_rate(e: Evidence) -> Finding:
    values = row(e, 1.0)
    (r, first), (s, second) = sorted(values.items(), key=lambda item: item[1], reverse=True)[:2]
    return largest(values, 0.8), f"{first:.2f} at r = {r}, then {second:.2f} at r = {s}"


@dataclass(frozen=True)
class Falling(Condition):
    """The best key of each column does not increase from one column to the next; of keys that are best together, any may be taken."""

    columns: tuple[dict[float, Amount], ...]

    def _tops(self) -> Iterator[dict[float, Condition]]:
        for values in self.columns:
            yield {key: every(not_below(values[key], other) for other in values.values() if other is not values[key]) for key in values}

    def leaves(self) -> Iterator[Leaf]:
        for tops in self._tops():
            for condition in tops.values():
                yield from condition.leaves()

    def answer(self, of: Callable[[Leaf], Answer]) -> Answer:
        answers = [{key: condition.answer(of) for key, condition in tops.items()} for tops in self._tops()]
        sure = [[key for key, answer in column.items() if answer is True] for column in answers]
        possible = [[key for key, answer in column.items() if answer is not False] for column in answers]
        if falls(sure) or all(max(after) <= min(before) for before, after in zip(possible, possible[1:], strict=False)):
            return True
        return None if falls(possible) else False


def falls(choices: list[list[float]]) -> bool:
    """Whether one of each can be taken so that none is above the one before."""
    bound = float("inf")
    for keys in choices:
        allowed = [key for key in keys if key <= bound]
        if not allowed:
            return False
        bound = max(allowed)
    return True


@claim("C03", "4.1", "The larger r, the smaller the best p", "the best p does not increase with r (of tied ones, any may be taken)")
def smaller_p_for_larger_r(e: Evidence) -> Finding:
    columns = {r: column(e, r) for r in rates(e)}
    text = ", ".join(f"{r}: {' or '.join(map(str, best(values)))}" for r, values in columns.items())
    return Falling(tuple(columns.values())), f"best p by r {text}"


@claim("C04", "3.2", "p = 1 fails at large r", "at each r >= 0.95, p = 1.0 is among the two worst of the column")
def fixed_rate_fails(e: Evidence) -> Finding:
    columns = {r: column(e, r) for r in rates(e) if r >= 0.95}
    few = [at_most(1, (above(values[1.0], value) for p, value in values.items() if p != 1.0)) for values in columns.values()]
    ranks = {r: sum(value < values[1.0] for value in values.values()) + 1 for r, values in columns.items()}
    return every(few), "place from below " + ", ".join(f"r={r}: {rank}" for r, rank in ranks.items())


@claim("C05", "3.2", "p = 0 fails at small r", "at each r <= 0.9, p = 0 is the worst of the column")
def fixed_number_fails(e: Evidence) -> Finding:
    columns = {r: column(e, r) for r in rates(e) if r <= 0.9}
    worst = [above(value, values[0.0]) for values in columns.values() for p, value in values.items() if p != 0.0]
    return every(worst), ", ".join(f"r={r}: {values[0.0]:.2f}" for r, values in columns.items())


@claim(
    "C06",
    "4.1",
    "The best adaptive setting beats the best fixed rate, and prunes more",
    "(0.99, 0.1) is above every cell of p = 1.0, whose best rate is below 0.99",
)
def adaptive_beats_fixed(e: Evidence) -> Finding:
    mine, fixed = grid(e)[0.99, 0.1], row(e, 1.0)
    top = max(fixed.values())
    better = every(above(mine, value) for value in fixed.values())
    lower_rate = some(above(value, fixed[0.99]) for r, value in fixed.items() if r < 0.99)
    return every([better, lower_rate]), f"{mine:.2f} vs {top:.2f} at r = {best(fixed)} ({mine - top:+.2f})"


@claim(
    "C07", "4.1", "For robust accuracy the best fixed rate lies above the 0.5 known for vanilla training", "best r at p = 1.0 exceeds 0.5"
)
def robust_wants_more_pruning(e: Evidence) -> Finding:
    values = row(e, 1.0)
    higher = some(above(value, values[0.5]) for r, value in values.items() if r > 0.5)
    return higher, f"best r = {best(values)}; r = 0.5 is {max(values.values()) - values[0.5]:.2f} lower"


@claim("C08", "D.2.6", "The best p is 0.1 at r = 0.99 and 1.0 at r = 0.5", "the one largest of each of the two columns")
def best_p(e: Evidence) -> Finding:
    columns = {r: column(e, r) for r in CURVES}
    tops = [largest(columns[r], p) for r, (_, p) in CURVES.items()]
    return every(tops), ", ".join(f"r={r}: p = {best(values)}" for r, values in columns.items())


@claim(
    "C09",
    "4.1, D.2.6",
    "A well chosen p makes training stable, another one unstable",
    "in the second half of training, the epoch-to-epoch changes of validation robust accuracy have a smaller standard deviation for the"
    " best p than for each other drawn p",
)
def stable_training(e: Evidence) -> Finding:
    holds, texts = True, []
    for rate, (name, good) in CURVES.items():
        spread = {}
        for p, strategy in DRAWN.items():
            curve = pd.Series(e.curve(f"sp_ratio.{strategy}.{name}"))
            steps = curve.iloc[len(curve) // 2 :].diff().dropna()
            if len(steps) < 3:
                raise e.lacks("epochs", f"only {len(curve)} epochs")
            spread[p] = 100 * float(steps.std())
        holds = holds and all(spread[good] < value for p, value in spread.items() if p != good)
        texts.append(f"r={rate}: " + ", ".join(f"p={p} {value:.2f}" for p, value in spread.items()))
    return holds, "; ".join(texts)
