"""The suite repeats recorded steps of the paper's own code; deliberate mistakes are seen."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from methods import binary_subnet
from methods.core import allocation
from methods.pruning import makers, masks
from methods.training import optim
from tests.golden import kinds_method, replay
from tests.golden.check import Check, Unreadable, rel
from tests.golden.kinds_method import KINDS

HERE = Path(__file__).parent
FILES = {
    "forward": HERE / "forward_in_rn18_lbn.npz",
    "allocation": HERE / "allocation.json",
    "init_stats": HERE / "init_stats.json",
} | {kind: HERE / f"{kind}.npz" for kind in KINDS if kind.endswith("_steps")}


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def failed(checks: list[Check]) -> set[str]:
    return {check.quantity for check in checks if not check.passed}


@pytest.mark.parametrize("kind", KINDS)
def test_recording_is_repeated(kind):
    checks = replay.repeat(FILES[kind], replay.kind_of(FILES[kind], replay.kinds()))
    assert len(checks) > 10
    assert not [check for check in checks if not check.passed]


@pytest.mark.parametrize("kind", ["pgd_train_steps", "binaryconnect_steps", "fgsm_atta_steps"])
def test_free_run_of_a_stable_recording_stays_on_it(kind):
    """These batches were selected so that rounding does not tip the attack: left to ourselves, we arrive where the original does."""
    free = [check for check in KINDS[kind](FILES[kind]) if check.quantity.startswith("free:")]
    assert free
    assert max(check.deviation for check in free) < 2e-5


def signed_ranking(monkeypatch):
    monkeypatch.setattr(makers, "select", lambda scores, kept: makers._Mask.apply(scores, kept))


def kept_rounded_down(monkeypatch):
    monkeypatch.setattr(allocation, "kept_count", lambda size, fraction: int(fraction * size))


def gradient_to_kept_only(monkeypatch):
    monkeypatch.setattr(
        makers.Scored, "forward", lambda self: self.weight * self.scores.abs() * masks.top_mask(self.scores.abs(), self.kept)
    )


def no_weight_decay(monkeypatch):
    plain = optim.optimizer
    monkeypatch.setattr("tests.golden.recorded.optimizer", lambda params, train: plain(params, train | {"weight_decay": 0.0}))


MISTAKES = [
    (signed_ranking, {"masks", "attack losses", "gradient of scores"}),
    (kept_rounded_down, {"kept counts"}),
    (gradient_to_kept_only, {"gradient of scores"}),
    (no_weight_decay, {"scores after the optimiser"}),
]


@pytest.mark.parametrize("mistake, seen", MISTAKES, ids=[mistake.__name__ for mistake, _ in MISTAKES])
def test_mistake_is_seen(mistake, seen, monkeypatch):
    mistake(monkeypatch)
    monkeypatch.setattr("tests.golden.method_steps.select", makers.select)
    assert seen <= failed(KINDS["pgd_train_steps"](FILES["pgd_train_steps"]))


@pytest.mark.parametrize(
    "change, seen",
    [
        ({"bn": "eval"}, {"running mean after the attack", "number of statistics updates", "attack losses"}),
        ({"pick": "last"}, {"chosen iterates", "adversarial images, absolute"}),
        ({"start": "none"}, {"attack losses"}),
    ],
)
def test_other_attack_is_seen(change, seen):
    checks = kinds_method.steps(
        FILES["pgd_train_steps"],
        module=binary_subnet,
        attack=kinds_method.PGD | change,
        trained="scores",
        attack_checks=kinds_method.pgd_checks,
    )
    assert seen <= failed(checks)


def test_two_forwards_of_trades_are_seen(monkeypatch):
    monkeypatch.setitem(kinds_method.trades.RECIPE["run"]["options"], "forwards", 2)
    assert failed(KINDS["trades_steps"](FILES["trades_steps"])) == {
        "number of statistics updates",
        "running mean after the step",
        "running variance after the step",
    }


def test_a_layer_is_whole_by_its_fraction_not_by_what_rounding_keeps():
    """19 of 20 weights are asked of the first layer; the pruned part, 0.99 of a weight, is rounded down to none."""
    fractions = torch.tensor([0.9505, 1.0, 0.5], dtype=torch.float64)
    assert allocation.kept_count(20, fractions[0].item()) == 20
    assert kinds_method.whole_layers(fractions) == 1


def test_command(tmp_path, capsys):
    assert replay.main([str(FILES["allocation"]), str(FILES["forward"])]) == 0
    assert "kept counts" in capsys.readouterr().out

    broken = tmp_path / "allocation.json"
    broken.write_text(FILES["allocation"].read_text().replace('"kept_total":', '"kept_total":1', 1))
    assert replay.main([str(broken)]) == 1
    assert "DEVIATES" in capsys.readouterr().out


@pytest.mark.parametrize("name, content", [("unheard_of.npz", b""), ("forward_cut.npz", b"PK\x03\x04cut"), ("allocation.json", b"{}")])
def test_unusable_file_is_one_line(tmp_path, capsys, name, content):
    file = tmp_path / name
    file.write_bytes(content)
    assert replay.main([str(file)]) == 2
    error = capsys.readouterr().err
    assert str(file) in error
    assert error.count("\n") == 1
    assert replay.main([str(tmp_path / "absent.npz")]) == 2


def test_check_and_rel():
    assert rel(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 4.0])) == 0.5
    assert rel(torch.tensor([float("nan")]), torch.tensor([1.0])) == float("inf")
    assert rel(torch.zeros(2), torch.zeros(2)) == 0
    assert not Check("q", float("nan"), 1.0).passed
    assert Check("q", 1.0, 1.0).passed
    with pytest.raises(Unreadable, match="no such file"):
        replay.kind_of(HERE / "forward_none.npz", KINDS)
