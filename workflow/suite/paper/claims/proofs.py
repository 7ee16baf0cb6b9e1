"""Claims that the paper argues mathematically, tried on small cases: scale invariance, gradients, the two theorems."""

from collections import defaultdict
from collections.abc import Iterator
from itertools import combinations, combinations_with_replacement, product
from math import comb, prod

import numpy as np

from workflow.suite.paper.claims.claim import Finding, claim
from workflow.suite.paper.claims.evidence import Evidence

SEED = 0
LARGE = 1e6  # the statement is about the limit


def normalised(x: np.ndarray) -> np.ndarray:
    """Batch norm without parameters, with batch statistics."""
    return (x - x.mean(0)) / x.std(0)


@claim(
    "C91",
    "3.3",
    "With batch norm the magnitude of weights does not change predicted labels",
    "labels of a random network whose layers are scaled",
)
def labels_are_unchanged(e: Evidence) -> Finding:
    draws = np.random.default_rng(SEED)
    x, first, last = draws.normal(size=(500, 8)), draws.normal(size=(8, 16)), draws.normal(size=(16, 10))
    labels = [(np.maximum(normalised(x @ (a * first)), 0) @ (b * last)).argmax(1) for a, b in ((1.0, 1.0), (0.01, 7.0), (30.0, 0.2))]
    same = [float((other == labels[0]).mean()) for other in labels[1:]]
    return all(share == 1 for share in same), f"{100 * min(same):.0f} % of 500 labels equal"


def last_layer(scale: float, *, lbn: bool) -> tuple[np.ndarray, np.ndarray]:
    """Size of the loss gradient with respect to the features, per example, and which examples are right; batch statistics are constants."""
    draws = np.random.default_rng(SEED)
    u, w, label = draws.normal(size=(60, 5)), draws.normal(size=(4, 5)), draws.integers(0, 4, 60)
    o = scale * u @ w.T
    std = o.std(0) if lbn else np.ones(4)
    logits = (o - o.mean(0)) / std if lbn else o
    chance = np.exp(logits - logits.max(1, keepdims=True))
    chance /= chance.sum(1, keepdims=True)
    gradient = (chance - np.eye(4)[label]) / std @ (scale * w)
    return gradient, logits.argmax(1) == label


@claim(
    "C92",
    "A.3",
    "Without LBN a large scale makes gradients vanish for right inputs and explode for wrong ones",
    f"at {LARGE:g} times the scale every right example's gradient shrinks and every wrong one's grows tenfold",
)
def vanish_or_explode(e: Evidence) -> Finding:
    (small, right), (large, _) = last_layer(1.0, lbn=False), last_layer(LARGE, lbn=False)
    growth = np.linalg.norm(large, axis=1) / np.linalg.norm(small, axis=1)
    holds = right.any() and (~right).any() and (growth[right] < 1).all() and (growth[~right] > 10).all()
    return bool(holds), f"right at most x{growth[right].max():.2g}, wrong at least x{growth[~right].min():.2g}"


@claim(
    "C93", "A.3", "With LBN the gradient with respect to the features does not change", "scaling the last layer changes it by rounding only"
)
def lbn_keeps_gradients(e: Evidence) -> Finding:
    change = np.abs(last_layer(1.0, lbn=True)[0] - last_layer(LARGE, lbn=True)[0]).max()
    return bool(change < 1e-9), f"largest change {change:.1g}"


def optima(sizes: tuple[int, ...], value) -> list[list[tuple[int, ...]]]:
    """For each number of kept weights, every allocation that maximises `value`."""
    by_total = defaultdict(list)
    for kept in product(*(range(n + 1) for n in sizes)):
        by_total[sum(kept)].append((value(kept), kept))
    return [[kept for score, kept in items if score == max(items)[0]] for items in by_total.values()]


def subnetworks(sizes: tuple[int, ...]):
    return lambda kept: prod(comb(n, m) for n, m in zip(sizes, kept, strict=True))


@claim(
    "C94",
    "A.1",
    "Theorems 1 and 2",
    "no optimum of two layers of up to 10 weights or three of up to 5, found by enumeration, violates them",
)
def theorems(e: Evidence) -> Finding:
    seen, broken = 0, 0
    for sizes in [*combinations_with_replacement(range(1, 11), 2), *combinations_with_replacement(range(1, 6), 3)]:
        for best in optima(sizes, subnetworks(sizes)):
            for kept in best:
                pairs = combinations(zip(kept, sizes, strict=True), 2)
                seen, broken = seen + 1, broken + any(abs(a * n - b * m) >= m + n for (a, m), (b, n) in pairs)
        for best in optima(sizes, prod):
            for kept in best:
                if min(kept) > 0:  # the second theorem needs a path
                    seen, broken = seen + 1, broken + any(m < n and m < max(kept) - 1 for m, n in zip(kept, sizes, strict=True))
    return broken == 0, f"{broken} violations in {seen} optima"


def most_paths(widths: tuple[int, int, int], first: int, second: int) -> int:
    """The largest number of input-output paths of a network of these widths that keeps so many weights in its two layers: every hidden
    unit has as many paths as it has weights in times weights out."""
    inputs, hidden, outputs = widths
    best = {(0, 0): 0}
    for _ in range(hidden):
        extended: dict[tuple[int, int], int] = {}
        for (a, b), paths in best.items():
            for i, j in product(range(min(inputs, first - a) + 1), range(min(outputs, second - b) + 1)):
                key = (a + i, b + j)
                extended[key] = max(extended.get(key, 0), paths + i * j)
        best = extended
    return best[first, second]


def equal_numbers(sizes: tuple[int, int], total: int) -> tuple[int, int] | None:
    """The same number of kept weights in both layers, a layer that has fewer being kept whole; `None` where that is no whole number."""
    small = min(sizes)
    if total > 2 * small:
        kept = (small, total - small)
        return kept if sizes[0] == small else kept[::-1]
    return None if total % 2 else (total // 2, total // 2)


def splits(widths: tuple[int, int, int]) -> Iterator[tuple[bool, str]]:
    """For each number of weights that this network can keep: whether equal numbers have the most paths, and the counts in words."""
    inputs, hidden, outputs = widths
    sizes = (inputs * hidden, hidden * outputs)
    for total in range(2, sum(sizes)):
        fixed = equal_numbers(sizes, total)
        if fixed is None:
            continue
        allowed = [(m, total - m) for m in range(sizes[0] + 1) if 0 <= total - m <= sizes[1]]
        count = {split: most_paths(widths, *split) for split in allowed}
        best = max(allowed, key=count.__getitem__)
        counts = " and ".join(f"{count[split]} by {split[0]} + {split[1]}" for split in (best, fixed))
        yield count[best] == count[fixed], f"{'-'.join(map(str, widths))} with {total} weights: {counts}"


@claim(
    "C95",
    "3.2",
    "A fixed rate maximises the search space, a fixed number the number of paths",
    "equal rates, where they are whole numbers, are always an optimum; and in no network of two layers up to three units wide does another"
    " split of the kept weights have more paths than equal numbers",
)
def exactly_maximal(e: Evidence) -> Finding:
    missed = total = 0
    for sizes in combinations_with_replacement(range(1, 13), 2):
        best = {sum(items[0]): items for items in optima(sizes, subnetworks(sizes))}
        for percent in (25, 50, 75):
            kept = [n * percent / 100 for n in sizes]
            if all(m.is_integer() for m in kept):
                total, missed = total + 1, missed + (tuple(map(int, kept)) not in best[int(sum(kept))])
    cases = [case for widths in product(range(1, 4), repeat=3) for case in splits(widths)]
    beaten = [text for most, text in cases if not most]
    text = f"equal rates miss the optimum in {missed} of {total} cases, equal numbers the most paths in {len(beaten)} of {len(cases)}"
    return missed == 0 and not beaten, text + (f", the first {beaten[0]}" if beaten else "")
