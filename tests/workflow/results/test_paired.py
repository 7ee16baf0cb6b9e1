"""Paired statistics against cases worked out by hand, closed forms and brute force."""

import itertools
import math

import numpy as np
import pytest
from scipy import stats as scipy_stats

from methods.core import eval_spec
from methods.core.eval_result import encode
from workflow.suite.planning.plan import Cell
from workflow.suite.planning.tables import Reported
from workflow.suite.results import contrast, outcomes, paired, ranking, stats, variance, versus
from workflow.suite.results.measure import Measured


def cell(row="a", column="x", metric="robust_acc"):
    return Cell(table="t", row=row, column=column, metric=metric, reported=Reported())


def measured(*seeds, row="a", data="images", stored=True, metric="robust_acc"):
    """A cell whose seeds were right on these images ("1" right, "0" wrong), with or without per-image outcomes."""
    codes = {"codes": ["none", "clean", "apgd-ce"]}
    results = tuple({"n": len(s), "broken_by": {**codes, "examples": s.replace("0", "2").replace("1", "0")}} for s in seeds)
    return Measured(
        cell=cell(row, metric=metric),
        status="done",
        values=tuple(s.count("1") / len(s) for s in seeds),
        counts=tuple((s.count("1"), len(s)) for s in seeds),
        labels=(data,),
        results=results if stored else tuple({"n": len(s)} for s in seeds),
    )


# Outcomes


def test_outcomes_of_an_evaluation():
    spec = eval_spec.parse({"attack": "standard", "norm": "Linf", "eps": "8/255", "examples": 4, "seed": 0, "block": 4})
    names = spec.attack.names
    result = {"n": 4, "broken_by": encode(["none", "clean", names[0], "none"], spec)}
    robust = outcomes.of_results([result], "robust_acc", "x")
    assert robust.right.tolist() == [[True, False, False, True]]
    clean = outcomes.of_results([result], "clean_acc", "x")
    assert clean.right.tolist() == [[True, False, True, True]]
    assert clean.images == ("x", 4)


def test_outcomes_need_stored_and_equal_images():
    stored = {"n": 2, "broken_by": {"codes": ["none", "clean"], "examples": "01"}}
    assert outcomes.of_results([stored, {"n": 2}], "clean_acc", "x") is None
    longer = {"n": 3, "broken_by": {"codes": ["none", "clean"], "examples": "011"}}
    assert outcomes.of_results([stored, longer], "clean_acc", "x") is None
    assert outcomes.of_results([], "clean_acc", "x") is None


def test_seeds_that_agree_are_worth_one():
    one, three = measured("1" * 30 + "0" * 70), measured(*["1" * 30 + "0" * 70] * 3)
    assert three.outcomes.effective == pytest.approx(100)
    assert three.interval == pytest.approx(one.interval)


def test_seeds_that_answer_by_themselves_are_worth_all():
    # Half of what the one is right on, and half of the rest: image means 1, 1/2, 1/2, 0, of variance 1/8; one answer has 1/4.
    item = measured("1100" * 25, "1010" * 25)
    assert item.outcomes.effective == 200
    assert item.interval == pytest.approx(stats.wilson(100, 200))


def test_seeds_that_agree_on_some_are_worth_something_between():
    # Image means 1, 1, 1/2, 0, of variance 11/64; one answer has 5/8 * 3/8 = 15/64.
    item = measured("1110" * 20, "1100" * 20)
    assert item.outcomes.effective == pytest.approx(80 * 15 / 11)
    assert item.interval == pytest.approx(stats.wilson(0.625 * 80 * 15 / 11, 80 * 15 / 11))


def test_seeds_that_contradict_or_know_everything():
    assert measured("10" * 8, "01" * 8).outcomes.effective == 32, "no more than there are answers"
    assert measured("1" * 8, "1" * 8).outcomes.effective == 8
    assert measured("0" * 8, "0" * 8).interval == measured("0" * 8).interval


def test_seeds_of_which_only_counts_are_known_are_worth_one():
    item = measured("1100" * 25, "1010" * 25, stored=False)
    assert item.interval == pytest.approx(stats.wilson(50, 100))


# McNemar, bootstrap, power, Holm


@pytest.mark.parametrize(
    ("only_first", "only_second", "p"),
    # 2 * P(X <= 1), X ~ Binomial(10, 1/2), is 2 * (1 + 10) / 1024.
    [(1, 9, 22 / 1024), (9, 1, 22 / 1024), (0, 5, 2 / 32), (5, 5, 1.0), (0, 0, 1.0), (1, 0, 1.0)],
)
def test_mcnemar_by_hand(only_first, only_second, p):
    assert paired.mcnemar(only_first, only_second) == pytest.approx(p)


def test_mcnemar_is_the_exact_binomial_test():
    for only_first, only_second in itertools.product(range(0, 40, 7), range(0, 60, 11)):
        n = only_first + only_second
        expected = scipy_stats.binomtest(only_first, n, 0.5).pvalue if n else 1.0
        assert paired.mcnemar(only_first, only_second) == pytest.approx(expected)


def test_the_bootstrap_is_that_of_resampled_images():
    draws, n = np.random.default_rng(1), 300
    difference = np.repeat([-1, 1, 0], [20, 60, 220])
    resampled = [draws.choice(difference, n).mean() for _ in range(4000)]
    low, high = paired.bootstrap(20, 60, n)
    assert (low, high) == pytest.approx(tuple(np.quantile(resampled, (0.025, 0.975))), abs=0.008)
    # Closed form: mean 40/300, variance (80 - 40^2/300) / 300^2.
    half = 1.96 * math.sqrt(80 - 1600 / 300) / 300
    assert (low, high) == pytest.approx((40 / 300 - half, 40 / 300 + half), abs=0.004)
    assert paired.bootstrap(0, 0, 10) == (0.0, 0.0)
    assert paired.bootstrap(20, 60, n) == (low, high), "equal data give an equal interval"


def test_the_smallest_difference_is_found_in_four_of_five_experiments():
    n, share = 1000, 0.2
    d = paired.smallest_difference(share, n)
    # The two sides of the equation it solves, at n = 1000 and q = 0.2.
    assert d * math.sqrt(n) == pytest.approx(1.959964 * math.sqrt(share) + 0.841621 * math.sqrt(share - d * d), rel=1e-5)
    draws = np.random.default_rng(0)
    counts = draws.multinomial(n, [(share - d) / 2, (share + d) / 2, 1 - share], 2000)
    power = np.mean([paired.mcnemar(int(a), int(b)) < 0.05 for a, b, _ in counts])
    assert power == pytest.approx(0.8, abs=0.04)


def test_few_discordant_images_can_show_nothing():
    assert paired.smallest_difference(0.05, 64) is None
    assert paired.smallest_difference(0.0, 10_000) is None
    assert paired.smallest_difference(0.3, 64) == pytest.approx(0.18, abs=0.01)


def test_holm_by_hand():
    # Sorted .005 .01 .03 .04 times 4 3 2 1 is .02 .03 .06 .04; running maximum .02 .03 .06 .06.
    assert paired.holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert paired.holm([0.5, 0.9]) == [1.0, 1.0]
    assert paired.holm([]) == []


# Contrasts


def test_a_difference_of_two_cells_is_mcnemars():
    first, second = measured("1100000000" + "1" * 10), measured("0011111111" + "1" * 10)
    test = contrast.test([(-1.0, first), (1.0, second)])
    assert test.value == pytest.approx(0.3)
    assert test.p == pytest.approx(paired.mcnemar(2, 8))
    assert contrast.test([(1.0, second), (-1.0, first)]).p == test.p


def test_equal_outcomes_differ_in_nothing():
    item = measured("10" * 8)
    assert contrast.test([(-1.0, item), (1.0, item)]).p == 1.0
    assert contrast.test([(1.0, item), (-1.0, item)], 0.1).p == 0.0, "a constant is not by chance"


def test_a_sum_of_four_cells_is_tested_image_by_image():
    draws = np.random.default_rng(3)
    texts = ["".join(map(str, draws.integers(0, 2, 200))) for _ in range(4)]
    items, factors = [measured(text, row=str(i)) for i, text in enumerate(texts)], (1.0, -1.0, -1.0, 1.0)
    sums = sum(f * np.array(list(map(int, text))) for f, text in zip(factors, texts, strict=True))
    expected = scipy_stats.ttest_1samp(sums, 0.0)
    test = contrast.test(list(zip(factors, items, strict=True)))
    assert test.value == pytest.approx(sums.mean())
    assert test.p == pytest.approx(expected.pvalue)
    assert test.interval() == pytest.approx(tuple(expected.confidence_interval(0.95)))
    shifted = contrast.test(list(zip(factors, items, strict=True)), 0.25)
    assert shifted.p == pytest.approx(scipy_stats.ttest_1samp(sums + 0.25, 0.0).pvalue)


def test_other_images_are_independent():
    first, second = measured("1" * 60 + "0" * 40), measured("1" * 80 + "0" * 20, data="other images")
    test = contrast.test([(-1.0, first), (1.0, second)])
    error = math.sqrt((0.6 * 0.4 + 0.8 * 0.2) / 99)  # of two sample means with ddof = 1
    assert test.error == pytest.approx(error)
    counted = contrast.test([(-1.0, measured("1" * 60 + "0" * 40, stored=False)), (1.0, second)])
    assert counted.error == pytest.approx(math.sqrt(0.24 / 100 + 0.16 / 99))


def test_several_seeds_add_their_variance():
    # All images equally often right, so that images differ in nothing and the spread is that of seeds: 0.5 and 0.7, 0.2 and 0.4.
    first, second = measured("1" * 5 + "0" * 5, "0" * 3 + "1" * 7), measured("1" * 2 + "0" * 8, "1" * 4 + "0" * 6)
    test = contrast.test([(-1.0, second), (1.0, first)])
    by_image = first.outcomes.by_image - second.outcomes.by_image
    seeds = 2 * 0.02 / 2  # each has variance 0.02 over two seeds
    assert test.value == pytest.approx(0.3)
    assert test.error == pytest.approx(math.sqrt(by_image.var(ddof=1) / 10 + seeds))


# Versus


def test_versus_counts_kinds_of_images():
    item = versus.between(measured("1011111111"), measured("1110000000"))
    assert item.kinds == (2, 7, 1, 0)
    assert item.difference == pytest.approx(0.6)
    assert item.p == pytest.approx(paired.mcnemar(1, 7))
    assert item.verdict == "undecided"
    assert item.interval == paired.bootstrap(1, 7, 10)


def test_versus_without_outcomes_is_newcombes():
    # Newcombe 1998, table II, method 10: 56/70 against 48/80.
    item = versus.between(measured("1" * 56 + "0" * 14, stored=False), measured("1" * 48 + "0" * 32, stored=False))
    assert item.interval == pytest.approx((0.0524, 0.3339), abs=5e-5)
    assert item.kinds is None
    assert item.verdict == "higher"


def test_a_family_is_adjusted():
    base = measured("0" * 20)
    family = versus.family([(measured("1" * 6 + "0" * 14), base), (measured("1" * 5 + "0" * 15), base)])
    assert [item.p for item in family] == pytest.approx([2 / 64, 2 / 32])
    assert [item.adjusted for item in family] == pytest.approx([4 / 64, 4 / 64])
    assert {item.verdict for item in family} == {"undecided"}


# Variance


def test_variance_split_by_hand():
    # Two seeds, two images, right: [1, 1], [1, 0]. Mean 3/4; seeds 1, 1/2; images 1, 1/2.
    # MS seeds = 2 * 2 / 16 = 1/4, MS images = 1/4, MS rest = 4 * (1/4)^2 = 1/4: all of it is rest.
    split = variance.split(np.array([[True, True], [True, False]]))
    assert (split.seed, split.image, split.rest) == pytest.approx((0.0, 0.0, 0.25))
    assert split.from_seeds == pytest.approx(math.sqrt(0.25 / 4))
    assert variance.split(np.ones((1, 5), bool)) is None


def test_variance_split_finds_what_was_put_in():
    draws, seeds, images = np.random.default_rng(0), 40, 4000
    chance = np.clip(0.5 + draws.normal(0, 0.05, (seeds, 1)) + draws.normal(0, 0.15, (1, images)), 0, 1)
    split = variance.split(draws.random((seeds, images)) < chance)
    assert math.sqrt(split.seed) == pytest.approx(0.05, abs=0.015)
    assert math.sqrt(split.image) == pytest.approx(0.15, abs=0.01)


# Ranks


@pytest.mark.parametrize(("methods", "quantile"), enumerate((1.960, 2.343, 2.569, 2.728, 2.850, 2.949, 3.031, 3.102, 3.164), 2))
def test_critical_values_are_those_of_demsars_table(methods, quantile):
    scale = math.sqrt(methods * (methods + 1) / 6)
    assert ranking.critical_difference(methods, 1) / scale == pytest.approx(quantile, abs=1.5e-3)


def test_critical_difference_of_four_methods_on_fourteen_sets():
    assert ranking.critical_difference(4, 14) == pytest.approx(1.25, abs=5e-3)  # Demšar 2006, section 3.2.2


def test_ranks_and_groups():
    values = {"good": [9, 9, 9, 9, 9, 9, 9, 9], "fair": [8, 8, 8, 8, 8, 8, 8, 8], "tied": [8, 8, 8, 8, 8, 8, 8, 8], "bad": [1] * 8}
    ranked = ranking.rank(values)
    assert ranked.names == ("good", "fair", "tied", "bad")
    assert ranked.ranks == (1.0, 2.5, 2.5, 4.0)
    assert ranked.critical == pytest.approx(2.569 * math.sqrt(20 / 48), abs=2e-3)  # 1.658
    assert ranked.groups == [(0, 2), (1, 3)]
    # Friedman without ties by hand: ranks 1, 2, 3 in all of five settings, chi2 = 12 * 5 / (3 * 4) * (1 + 4 + 9) - 3 * 5 * 4 = 10.
    clear = ranking.rank({"a": [3] * 5, "b": [2] * 5, "c": [1] * 5})
    assert clear.p == pytest.approx(math.exp(-10 / 2))


def test_too_few_settings_have_no_ranking():
    assert ranking.rank({"a": [1.0] * 4, "b": [2.0] * 4, "c": [3.0] * 4}) is None
    assert ranking.rank({"a": [1.0] * 5, "b": [2.0] * 5}) is None
    assert ranking.rank({name: [1.0] * 5 for name in "abc"}).p == 1.0


@pytest.mark.parametrize(("freedom", "errors"), [(1e9, 1.959964 + 0.841621), (2, 4.302653 + 1.060660)])
def test_what_students_test_could_show(freedom, errors):
    """Quantiles of printed tables: of the normal distribution, and of Student's with two degrees of freedom."""
    assert contrast.Contrast(value=0.0, p=1.0, error=0.01, freedom=freedom).smallest_difference() == pytest.approx(0.01 * errors, rel=1e-6)
    assert contrast.Contrast(value=0.0, p=1.0).smallest_difference() is None
