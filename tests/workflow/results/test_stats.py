"""Hand-computed statistics."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workflow.suite.results import stats


def test_mean_and_sample_deviation():
    assert stats.mean([0.25, 0.5, 0.75]) == 0.5
    assert stats.sd([0.25, 0.5, 0.75]) == pytest.approx(0.25)  # ddof = 1: sqrt(0.125 / 2)
    assert stats.sd([0.5]) is None


@pytest.mark.parametrize("n", [10, 64, 500, 10000])
def test_wilson_reaches_the_ends(n):
    """Rounding leaves no gap that would be a negative distance in a plot."""
    assert stats.wilson(0, n)[0] == 0
    assert stats.wilson(n, n)[1] == 1


@pytest.mark.parametrize(
    ("hits", "n", "low", "high"),
    [(0, 10, 0.0, 0.2775), (10, 10, 0.7225, 1.0), (5, 10, 0.2366, 0.7634), (4506, 10000, 0.4409, 0.4604)],
)
def test_wilson(hits, n, low, high):
    assert stats.wilson(hits, n) == pytest.approx((low, high), abs=5e-5)


@settings(deadline=None, derandomize=True)
@given(st.integers(1, 10_000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_wilson_holds_the_proportion_and_mirrors(pair):
    hits, n = pair
    low, high = stats.wilson(hits, n)
    assert 0 <= low <= hits / n + 1e-12
    assert hits / n - 1e-12 <= high <= 1
    other = stats.wilson(n - hits, n)
    assert other == pytest.approx((1 - high, 1 - low), abs=1e-9)


@pytest.mark.parametrize("pair", [(1, 0), (0, 0), (-1, 5), (6, 5)])
def test_wilson_refuses_what_is_no_proportion(pair):
    with pytest.raises(ValueError, match="not a proportion"):
        stats.wilson(*pair)
