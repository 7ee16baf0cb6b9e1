"""The trust panel on networks where the answer is known: an honest one passes, masked ones are caught, and answers never change."""

from __future__ import annotations

import json

import pytest
import torch
from torch import nn

from methods.core import fingerprint
from methods.core.trust import CHECKS, FAIL, NOT_APPLICABLE, PASS, STATES, WARN, Check, Panel, judged, overestimate
from methods.evaluate import evaluate
from methods.evaluation.trust import binarisation
from methods.evaluation.trust.budget import Afforded, afford, allowed
from methods.evaluation.trust.features import features_of
from tests.methods.evaluation.nets import ATTACK, images, trained

pytestmark = pytest.mark.usefixtures("network")

ATTACKS = {**ATTACK, "apgd_iter": 20, "fab_iter": 10, "square_queries": 300}
SPEC = {"attack": ATTACKS, "eps": "2/255", "block": 100}
CROSS_ENTROPY = {"attack": {"version": "custom", "attacks": ["apgd-ce"], "apgd_iter": 100}, "eps": "2/255", "block": 100}


class Masked(nn.Module):
    """The trained network behind or before something that hides its gradients; its features can be looked at."""

    def __init__(self, before=lambda x: x, after=lambda logits: logits):
        super().__init__()
        self.net, self.before, self.after = trained(), before, after

    def forward(self, x):
        return self.after(self.net(self.before(x)))

    def features(self, x):
        return features_of(self.net)(self.before(x))


def test_an_honest_network_passes_for_less_than_a_quarter():
    x, y = images(100)
    result = evaluate(trained(), x, y, spec=SPEC)
    panel = result.trust
    assert [check.name for check in panel.checks] == list(CHECKS)
    assert {check.name: check.state for check in panel.checks if check.state not in (PASS, NOT_APPLICABLE)} == {}
    assert panel.state == PASS
    assert 0 < panel.passes <= result.passes / 4
    assert str(result.after["square"] * 100)[:4] in panel["attacks"].text
    assert Panel.from_json(json.loads(json.dumps(panel.to_json()))) == panel


def test_the_panel_changes_no_answer():
    x, y = images(40)
    spec = {**SPEC, "block": 20}
    with_panel, without = evaluate(trained(), x, y, spec=spec), evaluate(trained(), x, y, spec=spec, trust=False)
    assert without.trust is None
    assert with_panel.broken == without.broken
    assert with_panel.passes == without.passes
    assert evaluate(trained(), x, y, spec=spec).trust == with_panel.trust
    assert evaluate(trained(), x, y, spec={"attack": "clean"}).trust is None
    assert not any("trust" in file for file in fingerprint.of_evaluation())


class Cramped(Masked):
    """A device with room for six images, as far as the caller can tell."""

    def forward(self, x):
        if len(x) > 6:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return super().forward(x)


def test_the_panel_stays_within_the_memory_that_the_evaluation_settled_on():
    x, y = images(60)
    spec = {**CROSS_ENTROPY, "block": 60}
    ample, cramped = evaluate(Masked(), x, y, spec=spec), evaluate(Cramped(), x, y, spec=spec)
    assert [w["kind"] for w in cramped.warnings] == ["memory"] * 4
    assert cramped.broken == ample.broken
    for name in ("randomness", "gradients", "temperature", "iterations", "large_radius", "square"):
        assert cramped.trust[name] == ample.trust[name]


@pytest.mark.parametrize("queries", [1, 20])
def test_a_tiny_evaluation_has_a_panel_that_says_so(queries):
    x, y = images(12)
    attack = {"version": "custom", "attacks": ["square"], "square_queries": queries}
    result = evaluate(trained(), x, y, spec={"attack": attack, "eps": "1/255"})
    assert [check.name for check in result.trust.checks] == list(CHECKS)
    assert "too small" in result.trust["binarisation"].text
    assert result.trust["iterations"].state == NOT_APPLICABLE
    assert result.trust.passes <= result.passes / 4


def test_saturated_logits_are_caught():
    """Logits times 10 000: the cross-entropy has no gradient, and only attacks that do not look at it get through."""
    x, y = images(100)
    panel = evaluate(Masked(after=lambda logits: 1e4 * logits), x, y, spec=CROSS_ENTROPY).trust
    assert panel["gradients"].state == FAIL
    assert panel["gradients"].number > 0.5
    assert panel["large_radius"].state == FAIL
    assert panel["temperature"].number > 0
    assert panel["attacks"].state == WARN
    assert panel.state == FAIL


def test_quantised_input_is_caught():
    x, y = images(100)
    panel = evaluate(Masked(before=lambda x: (16 * x).round() / 16), x, y, spec=SPEC).trust
    assert panel["gradients"].number == 1
    assert panel["warnings"].state == WARN
    assert panel["large_radius"].state == FAIL
    assert panel.state == FAIL


def test_randomised_input_is_caught():
    x, y = images(60)
    panel = evaluate(Masked(before=lambda x: x + 0.1 * torch.rand_like(x)), x, y, spec={**SPEC, "block": 60}).trust
    assert panel["randomness"].number == 1
    assert panel["randomness"].state == FAIL
    assert panel["warnings"].state == FAIL


@pytest.mark.parametrize(("before", "least", "most"), [(lambda x: x, 0.95, 1.0), (lambda x: (16 * x).round() / 16, 0.0, 0.2)])
def test_planted_images_are_found_where_gradients_are_worth_something(before, least, most):
    """Each planted corner is class 1 by construction, and the image itself class 0."""
    x, _ = images(6)
    net, generator = Masked(before=before).eval(), torch.Generator().manual_seed(0)
    with torch.no_grad():
        planted, corners, separated = binarisation.plant(net.features, x, eps=8 / 255, points=200, generator=generator)
        assert (corners - x).abs().max() <= 8 / 255 + 1e-6
        rows = separated.nonzero().squeeze(1)
        assert len(rows) >= 4
        assert planted(corners)[rows].argmax(1).tolist() == [1] * len(rows)
        assert planted(x)[rows].argmax(1).tolist() == [0] * len(rows)
        hit = binarisation.find(planted, x, eps=8 / 255, iterations=40, seed=0)[separated]
    assert least <= float(hit.float().mean()) <= most


def test_networks_without_known_features_are_not_planted():
    assert features_of(nn.Sequential(nn.Flatten(), nn.Linear(3072, 10))) is None
    x, _ = images(2)
    with torch.no_grad():
        logits = trained().head(features_of(trained())(x)[:, :, None, None]).flatten(1)
    torch.testing.assert_close(logits, trained()(x))


def test_further_attacks_are_judged_by_what_they_would_take():
    """Two of 32 survivors of a robust accuracy of 0.4 are 2.5 points."""
    assert overestimate("iterations", 0, 32, 0.4, "a", 1).state == PASS
    assert overestimate("iterations", 1, 32, 0.4, "a", 1).state == WARN
    check = overestimate("iterations", 2, 32, 0.4, "a", 1)
    assert check.state == FAIL
    assert check.number == pytest.approx(0.025)
    assert overestimate("iterations", 0, 0, 0.0, "a", 0).state == PASS


@pytest.mark.parametrize(("square", "state"), [(0.40, PASS), (0.399, PASS), (0.39, WARN), (0.37, FAIL)])
def test_square_is_judged_on_all_images(square, state):
    panel = judged(Panel(checks=()), {"apgd-ce": 0.5, "apgd-t": 0.4, "square": square}, 0.8, [], {"apgd-ce": 3, "apgd-t": 1, "square": 0})
    assert panel["square"].state == state
    assert panel["attacks"].number == square
    assert "apgd-ce 50.0 % (broke 3)" in panel["attacks"].text


@pytest.mark.parametrize(("left", "state"), [(0.0, NOT_APPLICABLE), (0.1, WARN)])
def test_a_robust_accuracy_of_zero_is_not_called_too_high(left, state):
    """What a check saw is kept; whether the network answers twice alike stays in question."""
    measured = Check(name="large_radius", state=WARN, number=0.25, text="seen"), Check(name="randomness", state=FAIL, number=1, text="")
    stored = Panel(checks=measured)
    warnings = [{"kind": "zero_gradient"}]
    once = judged(stored, {"apgd-ce": left}, 0.8, warnings, {"apgd-ce": 1})
    states = {"attacks": state, "warnings": state, "large_radius": state, "randomness": FAIL}
    assert {check.name: check.state for check in once.checks} == states
    assert once["large_radius"].number == 0.25
    assert once["large_radius"].text == "seen" + "; but no image withstood the evaluation: zero cannot be too high" * (left == 0)
    assert judged(once, {"apgd-ce": left}, 0.8, warnings, {"apgd-ce": 1}) == once
    assert judged(stored, {"apgd-ce": left}, 0.8, [{"kind": "randomized"}], {"apgd-ce": 1})["warnings"].state == FAIL


@pytest.mark.parametrize(
    ("kinds", "state"), [([], PASS), (["memory"], PASS), (["zero_gradient"], WARN), (["zero_gradient", "randomized"], FAIL)]
)
def test_warnings_of_the_library_are_judged(kinds, state):
    panel = judged(Panel(checks=()), {"square": 0.4}, 0.8, [{"kind": kind} for kind in kinds], {"square": 1})
    assert panel["warnings"].state == state


def test_the_worst_check_names_the_panel():
    for states, worst in (([], NOT_APPLICABLE), ([PASS, NOT_APPLICABLE], PASS), ([PASS, WARN], WARN), ([FAIL, WARN, PASS], FAIL)):
        checks = tuple(Check(name=name, state=state, number=None, text="") for name, state in zip(CHECKS, states, strict=False))
        assert Panel(checks=checks).state == worst
    assert set(STATES) == {PASS, WARN, FAIL, NOT_APPLICABLE}


def test_the_budget_is_dealt():
    assert allowed(1000, 100, 500) == 1000  # a fifth of the 5000 passes that all blocks should take
    assert afford(1000, available=100, fixed=1, per_iteration=2, most=100) == Afforded(32, 15)
    assert afford(100, available=100, fixed=1, per_iteration=2, most=100) == Afforded(8, 5)
    assert afford(10, available=100, fixed=1, per_iteration=2, most=100) is None
    assert afford(1e6, available=3, fixed=1, per_iteration=2, most=7) == Afforded(3, 7)
