"""Verdicts on our numbers: a claim holds or fails only where the test images can tell."""

import itertools

import pytest

from methods.core import paths, sealed
from workflow.suite.page import sheets
from workflow.suite.paper import checks
from workflow.suite.paper.claims import catalogue, evidence, verdicts
from workflow.suite.paper.claims.amount import Amount, of_cell
from workflow.suite.paper.claims.condition import Fact, MoreThan, Not, above, at_most, every, not_below, some
from workflow.suite.paper.claims.grid import Falling
from workflow.suite.planning import plan

CLAIMS = {item.id: item for item in catalogue.claims()}
N = 2000


class Known(Fact):
    """A condition with a fixed answer, unknown included."""


def known(*answers):
    return tuple(Known(answer) for answer in answers)


# Amounts


def test_amounts_keep_the_cells_they_are_made_of():
    a, b, c = of_cell("a", 5.0), of_cell("b", 3.0), of_cell("c", 1.0)
    change = (a - b) - (b - c) + 2
    assert float(change) == 2.0
    assert change.parts == {"a": 1.0, "b": -2.0, "c": 1.0}
    assert change.constant == 2.0
    assert (10 - a).parts == {"a": -1.0}
    assert (a - a).parts == {}
    assert abs(b - a).parts == {"a": 1.0, "b": -1.0}
    assert f"{b - a:+.2f}" == "-2.00"
    assert max(a, b, c) is a
    assert sorted([a, c, b]) == [1.0, 3.0, 5.0]


# Logic


@pytest.mark.parametrize(
    ("condition", "answer"),
    [
        (every(known(True, True)), True),
        (every(known(True, None)), None),
        (every(known(False, None)), False),
        (every(()), True),
        (some(known(True, None)), True),
        (some(known(False, None)), None),
        (some(known(False, False)), False),
        (some(()), False),
        (MoreThan(1, known(True, True, None)), True),
        (MoreThan(1, known(True, None, False)), None),
        (MoreThan(1.5, known(True, False, False)), False),
        (at_most(1, known(True, True, None)), False),
        (at_most(1, known(True, False, False)), True),
        (at_most(1, known(True, None, False)), None),
        (Not(Known(None)), None),
    ],
)
def test_kleenes_logic(condition, answer):
    assert condition.answer(lambda leaf: None) is answer


def test_kleenes_logic_is_what_all_completions_agree_on():
    for answers in itertools.product((True, False, None), repeat=4):
        completions = [
            [guess if answer is None else answer for answer, guess in zip(answers, guesses, strict=True)]
            for guesses in itertools.product((True, False), repeat=4)
        ]
        for make, plain in ((every, all), (some, any), (lambda items: MoreThan(2, items), lambda items: sum(items) > 2)):
            outcomes = {plain(completion) for completion in completions}
            expected = outcomes.pop() if len(outcomes) == 1 else None
            assert make(known(*answers)).answer(lambda leaf: None) is expected


def test_falling_with_undecided_columns():
    columns = tuple({1.0: of_cell(f"{i}.1", one), 0.5: of_cell(f"{i}.5", half)} for i, (one, half) in enumerate([(9.0, 1.0), (1.0, 9.0)]))
    condition = Falling(columns)
    assert condition.answer(lambda leaf: leaf.plain) is True
    assert Falling(columns[::-1]).answer(lambda leaf: leaf.plain) is False
    blurred = {"1.1", "1.5"}
    answer = condition.answer(lambda leaf: None if blurred & set(leaf.amount.parts) else leaf.plain)
    assert answer is True, "whichever is best in the second column, it is not above the first's"
    assert Falling(columns[::-1]).answer(lambda leaf: None if blurred & set(leaf.amount.parts) else leaf.plain) is None


# Tests on results


def outcomes(hits, n=N, at=0):
    """The first `hits` images after `at` are right."""
    right = set(range(at, at + hits))
    return "".join("0" if i in right else "2" for i in range(n))


def evaluate(ours, address, examples):
    cell = ours.plan.cells[address]
    for run in cell.runs:
        path = ours.folder / paths.evaluation(run, ours.plan.evaluations[run].id)
        path.parent.mkdir(parents=True, exist_ok=True)
        n, hits = len(examples), examples.count("0")
        result = {"clean_acc": 0.9, "n": n, "n_clean": n - n // 10, "robust_acc": hits / n, "n_robust": hits, "data": "images"}
        sealed.write(path, {**result, "broken_by": {"codes": ["none", "clean", "apgd-ce"], "examples": examples}})


def results(folder, scale, gains):
    """bn_ablation with 800 of 2000 images right without LBN, and `gains` more with it, row by row."""
    ours = evidence.of_results(plan.load(scale, data_root=folder), folder)
    for row, gain in zip(("a0001", "a001", "a01", "a1"), gains, strict=True):
        evaluate(ours, f"bn_ablation.{row}.no-lbn", outcomes(800))
        evaluate(ours, f"bn_ablation.{row}.lbn", outcomes(800 + gain))
    return evidence.of_results(ours.plan, folder)


@pytest.mark.parametrize(
    ("gains", "verdict", "significant"),
    [
        ((100, 90, 80, 60), "holds", 4),
        ((100, 90, 80, 5), "undecided", 3),  # p = 2/32 for five images
        ((100, 90, 80, -60), "fails", 4),
        ((100, 90, 80, 0), "undecided", 3),
        ((6, 6, 6, 6), "undecided", 0),  # each alone has p = 2/64, together 8/64
        ((6, 0, 0, 0), "undecided", 0),
    ],
)
def test_higher_holds_only_where_it_is_significant(tmp_path, gains, verdict, significant):
    judged = CLAIMS["C11"].judge(results(tmp_path, "paper", gains))
    assert judged.verdict == verdict, judged.numbers
    assert judged.numbers.endswith(f"{significant} of 4 comparisons significant")


def test_ranges_are_tested_image_by_image(tmp_path):
    # Range over a: 0 without LBN; with it 100 images.
    assert CLAIMS["C12"].judge(results(tmp_path / "wide", "paper", (100, 50, 50, 0))).verdict == "fails"
    assert CLAIMS["C12"].judge(results(tmp_path / "equal", "paper", (3, 3, 2, 2))).verdict == "undecided"


def test_a_reduced_scale_decides_nothing(tmp_path):
    judged = CLAIMS["C11"].judge(results(tmp_path, "demo", (500, 500, 500, 500)))
    assert judged.verdict == "not testable at this scale"
    assert "gains a=0.001 +25.00" in judged.numbers


def test_orderings_are_tested_where_the_scale_says_so(tmp_path):
    lite = results(tmp_path, "lite", (100, 90, 80, 60))
    assert lite.plan.scale.orderings
    assert CLAIMS["C11"].judge(lite).verdict == "holds"
    value = of_cell("bn_ablation.a1.lbn", 40.0)
    assert verdicts.is_ordering(above(value, value + value))
    assert not verdicts.is_ordering(above(3.0, value)), "how much is no ordering"
    assert not verdicts.is_ordering(Fact(True)), "how a mask looks is no ordering"


def test_a_threshold_is_part_of_what_is_tested(tmp_path):
    ours = results(tmp_path, "paper", (100, 0, 0, 0))  # 5 points
    gain = of_cell("bn_ablation.a0001.lbn", 45.0) - of_cell("bn_ablation.a0001.no-lbn", 40.0)
    assert verdicts.tested(above(gain, 3.0), ours.measured)[0] == "holds"
    assert verdicts.tested(above(gain, 4.9), ours.measured)[0] == "undecided"
    assert verdicts.tested(not_below(gain, 7.0), ours.measured)[0] == "fails"
    assert verdicts.tested(above(Amount(1.0, {}, 1.0)), ours.measured)[0] == "holds"


def test_reports_have_the_words_for_each_side(tmp_path):
    ours = results(tmp_path, "paper", (100, 90, 80, 60))
    text = checks.write_claims(ours.plan, tmp_path)[0].read_text()
    line = next(line for line in text.splitlines() if line.startswith("| C11 "))
    assert "**TRUE**" in line
    assert "**holds**" in line
    assert "Of 2 claims about results that both decide, 1 come out alike." in text
    sheet = sheets.claims(ours.plan, tmp_path)
    assert any("holds: our numbers satisfy the rule" in text for text in sheet.texts)
    shown = {line.entries[0].text: [entry.text for entry in line.entries] for line in sheet.lines}
    assert shown["C11"][4:] == ["TRUE", "holds"]
    assert shown["C90"][4:] == ["TRUE", "not about results"]
