"""The paper's contradictions, and its two tables of closed forms."""

import copy
import dataclasses
import re

import numpy as np
import pytest

from methods.core import paths
from methods.core.architectures import ARCHS
from methods.networks.resnet import build
from workflow.suite.paper import closed_tables, resnet, theory
from workflow.suite.paper.audit import algorithms, numbers, report, words
from workflow.suite.paper.claims import evidence


@pytest.fixture(scope="module")
def paper():
    return evidence.of_paper()


def changed(paper, **values):
    """The paper with other numbers in these cells."""
    cells = paper.cells.copy()
    for address, value in values.items():
        cells.loc[address, ["value", "state"]] = [value, "number"]
    return dataclasses.replace(paper, cells=cells)


def reprinted(paper, change):
    facts = copy.deepcopy(dict(paper.printed))
    change(facts)
    return dataclasses.replace(paper, printed=facts)


def test_one_cell_two_numbers(paper):
    assert numbers.two_numbers(paper) == [
        "FlyingBird RN34 Dynamic, CIFAR100, binary: 23.32 in `main_comparison`, 22.49 in `complete_comparison` (-0.83)",
        "ATMC RN34 p = 0.1, CIFAR10, binary: 24.62 in `main_comparison`, 24.65 in `complete_comparison` (+0.03)",
    ]
    assert numbers.equal_numbers(paper) == (51, 49)
    repaired = {"main_comparison.flyingbird.cifar100-binary": 22.49, "main_comparison.atmc.cifar10-binary": 24.65}
    assert numbers.two_numbers(changed(paper, **repaired)) == []
    assert len(numbers.two_numbers(changed(paper, **{"main_comparison.at.cifar10-fp": 43.27}))) == 3


def test_a_dash_for_a_number(paper):
    assert [line.split(":")[0] for line in numbers.dash_and_number(paper)] == [
        "BCS RN34 Dynamic, CIFAR10, binary",
        "BCS RN34 Dynamic, CIFAR100, binary",
    ]
    filled = {"main_comparison.bcs.cifar10-binary": 22.61, "main_comparison.bcs.cifar100-binary": 11.96}
    assert numbers.dash_and_number(changed(paper, **filled)) == []


def test_rows_that_differ_in_more_than_p(paper):
    (line,) = numbers.mixed_scales(paper)
    assert "10.49 as printed and 14.44 at equal a" in line
    assert "`main_ablation` has 30.62" in line
    cells = paper.cells.copy()
    cells.loc["complete_comparison.ours-p10.cifar10-binary", "a"] = 0.001
    assert numbers.mixed_scales(dataclasses.replace(paper, cells=cells)) == []


def test_captions_against_rows(paper):
    contradictions = words.captions(paper)
    assert len(contradictions) == 5
    assert (
        "0 of 4 common cells are equal, 4 equal `at-small-p10`; what is said would be better by 3.20, 6.51, 0.78, 0.33"
        in contradictions[-1]
    )

    def repair(facts):
        facts["small_row"]["said"] = "at-small-p10"
        for caption in facts["captions"]:
            caption["marks_among"] = "compressed"
            caption.pop("explains_row", None)

    assert words.captions(reprinted(paper, repair)) == []


def test_formulas_against_arithmetic(paper):
    lines = words.formulas(paper)
    assert len(lines) == 7
    for line, part in zip(lines[:4], ("1.0942, above 1", "3527 of its 1728", "not [23, 25, 27, 28]", "1.60 at r = 0.99"), strict=True):
        assert part in line
    assert "has the softmax of the label where that of the logit itself belongs" in lines[4]
    turned = reprinted(paper, lambda facts: facts["random_pruning"].update(empty_kernel_exponent_sign=-1))
    assert len(words.formulas(turned)) == 6
    right = reprinted(paper, lambda facts: facts["normalised_gradient"].update(softmax_of="logit"))
    assert words.formulas(right) == [line for line in lines if "softmax" not in line]


def test_the_gradient_below_a_norm_by_hand():
    # Label 0, logit 1 of the case: softmax of (1.4, -0.2, 1.875) over deviation 1.5, against the label's softmax over the same.
    chances = np.exp([1.4, -0.2, 1.875]) / np.exp([1.4, -0.2, 1.875]).sum()
    printed = max(
        abs(chances[label] - chances[j]) / deviation for label in range(3) for j, deviation in enumerate((0.5, 1.5, 0.8)) if j != label
    )
    assert theory.normalised_gradient_error("label") == pytest.approx(printed, abs=1e-8)
    assert theory.normalised_gradient_error("logit") < 1e-8


def test_algorithms_as_they_stand(paper):
    lines = algorithms.algorithms(paper)
    assert [line.split(" adds")[0] for line in lines[:2]] == ["Algorithm 1", "Algorithm 2"]
    assert "updates the scores after the loop over mini-batches" in lines[2]
    assert len(lines) == 6

    def repair(facts):
        for algorithm in facts["algorithms"]:
            algorithm["attack"]["direction"] = "sign"
            algorithm["update"]["inside"] = ["batches"]
            algorithm["loops"]["examples"] = "batch size"
            algorithm.pop("stored", None)

    assert algorithms.algorithms(reprinted(paper, repair)) == []


def test_suspicious_numbers(paper):
    assert len(numbers.twins(paper)) == 3
    assert all("FlyingBird RN34 and FlyingBird+ RN34" in line for line in numbers.twins(paper))
    assert len(numbers.binary_above_full(paper)) == 5
    assert numbers.small_above_full(paper) == ["`comparison_rn18_rn50`, rn50-binary: Small RN50-p0.1 32.25, RN50 31.18"]
    assert len(numbers.small_above_full(changed(paper, **{"vanilla.at-small.cifar10-fp": 99.0}))) == 2


def test_the_report_is_generated_from_all_finders(paper):
    text = report.markdown(paper, made_by="x")
    assert "## Sentences that tables or arithmetic falsify (31)" in text
    assert "## Vague words that do not hold at our threshold (5)" in text
    assert "43 marks are right" in text
    assert "2 in `bn_ablation`" in text
    for counts in ("61 of 61 cells", "58 of 58 cells", "57 of 57"):
        assert counts in text
    other = report.markdown(changed(paper, **{"main_comparison.at.imagenet100-fp": 53.91}), made_by="x")
    assert "56 of 57" in other


def test_a_moved_mark_of_any_table_is_seen(paper):
    cells = paper.cells.copy()
    cells.loc["bn_ablation.a01.no-lbn", "mark"] = None
    (line,) = (line for line in words.checked(dataclasses.replace(paper, cells=cells)) if "marks" in line)
    assert "42 marks are right" in line
    assert line.endswith("1 wrong or missing")


def test_layers_and_shares_are_those_of_the_trained_networks(paper):
    from methods.core.allocation import allocate, exact_shares

    facts = paper.printed["network"]
    net = build("rn34", classes=10)
    layers = resnet.layers(facts)
    assert [(item.channels_out, item.channels_in, item.kernel) for item in layers] == [
        (conv.out_channels, conv.in_channels, conv.kernel_size[0]) for _, conv in net.convs()
    ]
    sizes = [item.weights for item in layers]
    assert sum(sizes) == resnet.parameters(facts, affine=False) == facts["parameters"]
    affine = build("rn34", classes=10, bn_affine=True)
    assert resnet.parameters(facts, affine=True) == sum(p.numel() for p in affine.parameters())
    for p in (0.0, 0.1, 0.5, 1.0):
        official = [fraction * size for fraction, size in zip(allocate(sizes, 0.01, p), sizes, strict=True)]
        assert exact_shares(sizes, sparsity=0.99, p=p) == pytest.approx(official, rel=1e-3, abs=2)


def evaluated(formula, c, s, r, r_in, r_out):
    """A printed formula as a number."""
    for symbol, name in (("r_{in}", " r_in "), ("r_{out}", " r_out "), ("c^2", " c**2 "), ("s^2", " s**2 "), ("(1-r)", " (1-r) ")):
        formula = formula.replace(symbol, name)
    terms = ["*".join(term.split()) for term in formula.split(" + ")]
    return eval("+".join(terms), {}, {"c": c, "s": s, "r": r, "r_in": r_in, "r_out": r_out})


def test_complexity(paper):
    table = closed_tables.complexity(paper)
    block = theory.Block(kernel=3, size=5, channels_in=7, channels_out=11, sparsity=0.9)
    costs = {
        "forward, training": lambda binary: block.forward(binary=binary, training=True),
        "forward, evaluation": lambda binary: block.forward(binary=binary, training=False),
        "backward, training": lambda binary: block.backward(binary=binary),
    }
    for name, cost in costs.items():
        for formula, binary in zip(closed_tables.FORMULAS[name], (False, True), strict=True):
            assert evaluated(formula, 3, 5, 0.9, 7, 11) == pytest.approx(cost(binary))
    assert [row[5:7] for row in table.rows[:3]] == [("0.6616", "0.6616"), ("0.5740", "0.5740"), ("0.7065", "0.7065")]
    assert [row[-2:] for row in table.rows[3:]] == [("44.92", ""), ("31.65", ""), ("36.04", "45"), ("48.02", "32")]


def test_small_networks_come_out_as_printed(paper):
    table = closed_tables.small_networks(paper)
    for row in table.rows:
        assert row[2] == row[3]
        assert row[5] == row[6]
    assert [list(ARCHS[net["arch"]].channels) for net in paper.printed["small_networks"]] == [
        net["widths"][1:] for net in paper.printed["small_networks"]
    ]
    assert table.rows[-1] == ("#params", "", "201078", "201078", "", "216360", "216360")


def test_closed_tables_in_every_format(paper):
    assert tuple(closed_tables.TABLES) == paths.CLOSED
    for make in closed_tables.TABLES.values():
        table = make(paper)
        tex = table.latex("100 % & more")
        body = "\n".join(line for line in tex.splitlines() if not line.startswith("%"))
        assert body.count("{") == body.count("}")
        assert body.count(r"\begin{") == body.count(r"\end{")
        assert not re.search(r"(?<!\\)(#|%(?!$))", body, re.MULTILINE)  # one at the end of a line hides its break
        assert {line.count("&") for line in body.splitlines() if line.endswith(r" \\")} == {len(table.heads) - 1}
        assert table.sheet().count("\n") == len(table.rows) + 1
        assert table.markdown("x").count("\n|") == len(table.rows) + 2
