"""bfloat16 in training: what computes in it and what does not, for every method; what the recordings say; and that it is harmless."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
import torch.distributed as dist
from torch import nn

from methods.core.errors import UserError
from methods.core.run_spec import slug
from methods.data.load import load_of
from methods.data.part import part_of
from methods.distributed.synced_norm import SyncedNorm
from methods.distributed.world import ALONE
from methods.networks.resnet import Net
from methods.train import main, run
from methods.training import precision
from methods.training.loop import train
from methods.training.method import Method
from methods.training.optim import optimizer
from methods.training.registry import load_method
from methods.training.resume import Resume
from methods.training.step import step
from methods.training.validation import validate
from tests.baselines.toy_runs import CASES, make, sample, toy
from tests.golden import replay
from tests.specs import small, text

UNIT = 2.0**-8  # spacing of bfloat16 numbers, relative


class Seen:
    """Number formats of what goes into each kind of layer of a network, and of its logits."""

    def __init__(self, net: Net):
        self.formats: dict[str, set[torch.dtype]] = {"convolutions": set(), "classifier": set(), "last norm": set(), "logits": set()}
        self.hooks = [net.register_forward_hook(lambda m, i, out: self.formats["logits"].add(out.dtype))]
        for name, conv in net.convs():
            self._watch(conv, "classifier" if name == "head" else "convolutions")
        if net.last_norm is not None:
            self._watch(net.last_norm, "last norm")

    def _watch(self, layer: nn.Module, kind: str) -> None:
        # What a convolution is given may still be float32: it is rounded inside. What it gives tells the format that it computes in.
        self.hooks.append(layer.register_forward_hook(lambda m, i, out: self.formats[kind].add(out.dtype)))


def one_step(method, data):
    method.optimizer = optimizer(method.trainables(), method.spec["train"])
    batch = next(data.train.batches(batch=24, seed=1, augment=method.augment))
    return step(method, batch, 0, 0, ALONE)


@pytest.mark.parametrize(("name", "variant"), CASES)
def test_convolutions_are_lowered_and_nothing_that_lasts(name, variant):
    built = make(name, toy(name, variant, **{"train.compute": "bf16"}))
    seen = Seen(built.net)
    sums = one_step(built, sample())
    assert seen.formats["convolutions"] == {torch.bfloat16}
    assert seen.formats["classifier"] == {torch.float32}
    assert seen.formats["logits"] == {torch.float32}
    lasting = [*built.tensors().values(), *sums.values(), *(p.grad for p in built.parameters() if p.grad is not None)]
    lasting += [value for state in built.optimizer.state.values() for value in state.values() if isinstance(value, torch.Tensor)]
    lasting += [value for value in built.state()["attack"].values() if isinstance(value, torch.Tensor)]
    assert {t.dtype for t in lasting if t.is_floating_point()} == {torch.float32}
    assert not built.net.lowered


@pytest.mark.parametrize(("name", "variant"), CASES)
def test_gradients_reach_what_they_reach_in_single_precision(name, variant):
    """An attack that begins without gradients must not leave weights behind that were rounded without them."""
    reached = {}
    for compute in ("fp32", "bf16"):
        built = make(name, toy(name, variant, **{"train.compute": compute}))
        before = {key: t.clone() for key, t in built.decided().items()}
        one_step(built, sample())
        reached[compute] = {key for key, t in built.decided().items() if not torch.equal(t, before[key])}
    assert reached["bf16"] == reached["fp32"]


def test_validation_is_in_single_precision():
    built = make("binary_subnet", small("binary_subnet", arch="rn18", rewrite={"train.compute": "bf16"}))
    seen = Seen(built.net)
    validate(built, built.net, sample().val, 0)
    assert set.union(*seen.formats.values()) == {torch.float32}


def test_perturbations_are_in_single_precision():
    built = make("at", small("at", arch="rn18", rewrite={"train.compute": "bf16"}))
    batch = next(sample().train.batches(batch=8, seed=1))
    draws = built.draws("step")
    assert part_of(draws) is None
    with precision.computed_in("bf16", built.net):
        _, adv = built.adversarial(batch, draws)
    assert adv.dtype == torch.float32
    steps = ((adv - batch.x) * 255).abs()
    assert steps.max() <= 8 + 1e-3
    assert len(steps.unique()) > 1000  # bfloat16 would leave a few hundred


def level(norm: nn.BatchNorm2d) -> tuple[float, float]:
    """Running mean and variance after 4095 ones and one 1 + 1/128 per channel, in bfloat16."""
    x = torch.ones(16, 1, 16, 16, dtype=torch.bfloat16)
    x[0, 0, 0, 0] += 2.0**-7
    norm.train()(x)
    return norm.running_mean.item(), norm.running_var.item()


@pytest.mark.parametrize("synced", [False, True])
def test_statistics_of_norms_are_added_up_in_single_precision(synced, tmp_path):
    """The mean is 1 + 2^-19: in bfloat16 it would be 1, the variance 0, and 4096 ones would add up to 256."""
    norm = nn.BatchNorm2d(1, affine=False, momentum=1.0)
    if synced:
        dist.init_process_group("gloo", store=dist.FileStore(str(tmp_path / "store"), 1), rank=0, world_size=1)
        norm.__class__ = SyncedNorm
    try:
        mean, var = level(norm)
    finally:
        if synced:
            dist.destroy_process_group()
    assert mean == pytest.approx(1 + 2.0**-19, abs=2e-7)
    assert var == pytest.approx(2.0**-14 / 4096, rel=0.01)


GOLDEN = Path(replay.__file__).parent
# Decided in whole numbers or computed from recorded gradients: bfloat16 has no part in them.
UNTOUCHED = ("layer table", "kept", "masks", "binary weights", "number of statistics updates", "after the optimiser")
LOWERED = ("loss", "running mean", "running variance", "running statistics")


@pytest.mark.parametrize("kind", ["pgd_train", "at_fp", "binaryconnect", "fgsm_atta", "trades", "hydra_prune", "rst"])
def test_recorded_steps_are_repeated_within_the_precision_of_the_format(kind, monkeypatch):
    """Losses and statistics within two units of bfloat16; what must not notice does not. (Signs and gradients of untrained networks
    are chaotic; those of a trained one are looked at below.)"""
    monkeypatch.setattr(Net, "lowered", True)
    file = GOLDEN / f"{kind}_steps.npz"
    checks = [check for check in replay.repeat(file, replay.kind_of(file, replay.kinds())) if not check.quantity.startswith("free")]
    untouched = [check for check in checks if any(word in check.quantity for word in UNTOUCHED)]
    lowered = [check for check in checks if check.quantity.startswith(LOWERED) and check not in untouched]
    assert not [check for check in untouched if not check.passed]
    assert not [check for check in lowered if check.deviation > 2 * UNIT]
    assert [check for check in lowered if check.deviation > check.tolerance], "the recording was repeated in single precision"


QUICK = {"width": 0.125, "data.size": 16, "data.train": 640, "data.val": 20, "train.epochs": 2, "train.batch": 16, "train.lr": 0.02}
SEEDS = range(3)


@pytest.fixture(scope="module")
def trained(tmp_path_factory) -> dict[str, list[Method]]:
    """Networks trained from three seeds in both formats. The same seed has the same start, order and noise."""
    methods: dict[str, list[Method]] = {}
    for compute in ("fp32", "bf16"):
        for seed in SEEDS:
            spec = small("at", arch="rn18", eps="2/255", rewrite=QUICK | {"train.compute": compute}) | {"seed": seed}
            data = load_of(spec)
            method = load_method("at")(spec, data, device=torch.device("cpu"))
            train(method, data, resume=Resume(tmp_path_factory.mktemp("state"), "x"), log=lambda _: None)
            methods.setdefault(compute, []).append(method)
    return methods


def test_training_reaches_the_same_accuracy_within_the_spread_of_seeds(trained):
    """Paired over seeds and over a thousand test images."""
    test = load_of(trained["fp32"][0].spec).test
    x, y = next(test.batches(batch=len(test)))[:2]
    with torch.no_grad():
        right = {compute: torch.stack([(m.net.eval()(x).argmax(1) == y).float() for m in methods]) for compute, methods in trained.items()}
    accuracies = right["fp32"].mean(1)
    gap = (right["bf16"] - right["fp32"]).mean().item()
    # Images on which the two of a pair disagree fall to either side alike: that, and the spread of seeds, is all the gap may come from.
    disagreements = (right["bf16"] != right["fp32"]).sum().item() ** 0.5 / right["fp32"].numel()
    deviation = (disagreements**2 + accuracies.var().item() / len(SEEDS)) ** 0.5
    assert accuracies.min() > 0.15, "every network learnt something: chance is 0.1"
    assert abs(gap) <= 3 * deviation
    assert abs(gap) <= 0.03


def test_gradients_of_a_trained_network_point_the_same_way(trained):
    method = trained["fp32"][0]
    batch = next(load_of(method.spec).train.batches(batch=128, seed=9))
    gradients = {}
    for compute in ("fp32", "bf16"):
        x = batch.x.clone().requires_grad_()
        with precision.computed_in(compute, method.net.train()):
            loss = nn.functional.cross_entropy(method.net(x), batch.y)
        gradients[compute] = torch.autograd.grad(loss, [x, *(conv.weight for _, conv in method.net.convs())])
    for single, lowered in zip(*gradients.values(), strict=True):
        assert torch.cosine_similarity(single.flatten(), lowered.flatten(), 0) > 0.98
    agreeing = gradients["fp32"][0].sign() == gradients["bf16"][0].sign()
    assert agreeing.float().mean() > 0.95


def test_a_run_is_another_one_in_another_format_and_the_default_has_no_name():
    plain, explicit, lowered = (small("at", rewrite=more) for more in ({}, {"train.compute": "fp32"}, {"train.compute": "bf16"}))
    assert text(explicit) == text(plain)
    assert "compute" not in plain["train"]
    assert lowered["train"]["compute"] == "bf16"
    assert slug(lowered) == f"{slug(plain)}-bf16"


def test_a_processor_without_units_is_refused_before_anything_is_touched(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(precision, "has_units", lambda: False)
    spec = small("at", arch="rn18", rewrite={"train.compute": "bf16"})
    assert main(["--spec", text(spec), "--out", str(tmp_path / "run")]) == 2
    error = capsys.readouterr().err
    assert error.endswith("; or imitate them all the same: --config imitate_bf16=true, or SUITE_IMITATE_BF16=1\n")
    assert error.startswith("error: 'train.compute: bf16': this CPU has no bfloat16 units (avx512_bf16, amx_bf16, bf16")
    assert error.count("\n") == 1
    assert not (tmp_path / "run").exists()
    run(small("at", arch="rn18", rewrite={"train.epochs": 1}), tmp_path / "run", None)
    assert (tmp_path / "run" / "train.json").exists()


@pytest.mark.parametrize(
    ("flags", "has"),
    [("fma avx512f avx512_bf16 amx_tile", True), ("Features : fp asimd bf16", True), ("flags : avx2 avx512f avx512_vnni", False)],
)
def test_units_are_read_from_the_processor(tmp_path, flags, has):
    (tmp_path / "cpuinfo").write_text(f"processor : 0\n{flags}\n")
    assert precision.has_units(tmp_path / "cpuinfo") is has
    assert not precision.has_units(tmp_path / "none")


def test_a_gpu_without_units_is_refused(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda including_emulation: False)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda: "Tesla T4")
    with pytest.raises(UserError, match="Tesla T4 has no bfloat16 units"):
        precision.require_units({"compute": "bf16"}, "cuda")
    precision.require_units({}, "cuda")
