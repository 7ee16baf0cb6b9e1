"""HYDRA: first scores, what each phase trains, what it hands over, its loss, its recipe."""

from __future__ import annotations

from functools import cache
from math import sqrt
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import torch
import torch.nn.functional as F

from baselines.hydra import Hydra, scaled_scores, trades_step
from methods.core.allocation import layer_counts
from methods.core.architectures import Arch
from methods.core.errors import UserError
from methods.data.load import load
from methods.networks.resnet import Net, build
from methods.pruning.makers import select
from methods.training.loop import train
from methods.training.resume import Resume
from tests.specs import small
from workflow.suite.planning import plan, recipes, resolve
from workflow.suite.planning.config import ROOT, load_scale

CPU = torch.device("cpu")
PHASES = ("pretrain", "prune", "finetune")


@cache
def sample():
    return load("cifar10", source="sample", train=48, val=8)


def spec_of(phase: str, **cell) -> dict:
    return small("hydra", phase=phase, arch="rn18", rewrite={"train.epochs": 1}, **({"sparsity": 0.9} | cell))


@cache
def chain(precision: str, lbn: bool = False) -> dict[str, tuple[Hydra, dict, dict]]:
    """Method, state before and state after of each phase, trained for one epoch and handed on."""
    trained, parent = {}, None
    for phase in PHASES:
        method = Hydra(spec_of(phase, precision=precision, lbn=lbn), sample(), device=CPU, parent=parent)
        before = {name: tensor.clone() for name, tensor in method.tensors().items()}
        with TemporaryDirectory() as folder:
            outcome = train(method, sample(), resume=Resume(Path(folder), "x"), log=lambda _: None)
        trained[phase] = method, before, {name: tensor.clone() for name, tensor in method.tensors().items()}
        parent = outcome.handed_over
    return trained


def at_scale_paper(**cell) -> dict:
    recipe = recipes.load_all(ROOT)["hydra"]
    cell = {"method": "hydra", "dataset": "cifar10", **cell}
    return resolve.resolve(recipe, cell, scale=load_scale("paper"), seed=1234, root=Path("no-such-data"), phase=cell["phase"])


def test_first_scores_by_hand():
    """fan_in 2: bound sqrt(6 / 2); the largest magnitude, 2, arrives there."""
    weight = torch.tensor([[1.0, -2.0], [0.5, 0.0]]).view(2, 2, 1, 1)
    expected = torch.tensor([[0.5, -1.0], [0.25, 0.0]]).view(2, 2, 1, 1) * sqrt(3)
    assert torch.allclose(scaled_scores(weight), expected, rtol=1e-7)


@pytest.mark.parametrize(
    ("p", "rule", "total", "stem", "largest"), [(0.1, "adaptive", 212_685, 1728, 7326), (1, "fixed", 212_669, 18, 23_593)]
)
def test_kept_counts_of_the_full_network(p, rule, total, stem, largest):
    with torch.device("meta"):
        sizes = [conv.weight.numel() for _, conv in build("rn34", classes=10).convs()]
    counts = layer_counts(sizes, 0.99, p, rule=rule)
    assert (sum(counts), counts[0], max(counts)) == (total, stem, largest)


def test_counts_that_do_not_fit_are_refused():
    for p, rule in ((0.1, "fixed"), ("global", "adaptive"), (0.1, "both")):
        with pytest.raises(UserError, match="options.counts"):
            layer_counts([10], 0.5, p, rule=rule)


@pytest.mark.parametrize("precision", ["fp", "binary"])
def test_first_mask_is_by_magnitude(precision):
    _, _, pretrained = chain(precision)["pretrain"]
    method, before, _ = chain(precision)["prune"]
    for name, maker in method.realisation.makers.items():
        source = pretrained[f"maker.{name}.latent" if precision == "binary" else f"net.{name}.weight"]
        assert torch.equal(before[f"maker.{name}.weight"], source)
        assert torch.equal(before[f"net.{name}.weight"] != 0, select(source, maker.kept) != 0)


@pytest.mark.parametrize("precision", ["fp", "binary"])
def test_search_moves_scores_and_norms_only(precision):
    method, before, after = chain(precision, lbn=True)["prune"]
    frozen = [f"maker.{name}.weight" for name, _ in method.net.convs()] + ["net.head.bias"]
    moved = [f"maker.{name}.scores" for name, _ in method.net.convs()] + ["net.stem_norm.weight", "net.stem_norm.bias"]
    moved += ["net.last_norm.weight", "net.last_norm.bias"]  # the last batch norm is treated like the others
    assert all(torch.equal(before[name], after[name]) for name in frozen)
    assert not [name for name in moved if torch.equal(before[name], after[name])]


@pytest.mark.parametrize("precision", ["fp", "binary"])
def test_finetuning_keeps_the_mask(precision):
    _, _, searched = chain(precision)["prune"]
    method, before, after = chain(precision)["finetune"]
    assert all(torch.equal(before[name], searched[name]) for name in before)
    for name, maker in method.realisation.makers.items():
        assert torch.equal(before[f"maker.{name}.scores"], after[f"maker.{name}.scores"])
        assert torch.equal(before[f"net.{name}.weight"] != 0, after[f"net.{name}.weight"] != 0)
        assert int(after[f"net.{name}.weight"].count_nonzero()) == maker.kept
    assert not torch.equal(before["net.head.bias"], after["net.head.bias"])


def test_binary_network_is_ternary_everywhere():
    method, _, _ = chain("binary")["finetune"]
    for _, conv in method.net.convs():
        assert set(conv.weight.unique().tolist()) <= {-1.0, 0.0, 1.0}
    report = method.report()
    assert report["distinct_values"] == 2
    assert report["nonzero"] == report["kept"]
    assert report["classifier_bias"] == 10


def one_step(phase: str) -> Hydra:
    """A method of the phase with the gradients of one batch in place."""
    previous = PHASES[PHASES.index(phase) - 1]
    method = Hydra(spec_of(phase), sample(), device=CPU, parent=chain("fp")[previous][2])
    batch = next(iter(sample().train.batches(batch=24, seed=7, epoch=0, augment="none", device=CPU)))
    loss, _ = method.loss(batch, method.draws("step", 0, 0))
    loss.backward()
    method.pull()
    return method


def test_pruned_weights_get_no_gradient_but_all_scores_do():
    finetuned = one_step("finetune").realisation.makers
    assert all((maker.weight.grad[select(maker.scores.detach(), maker.kept) == 0] == 0).all() for maker in finetuned.values())
    searched = one_step("prune").realisation.makers["head"]
    assert searched.kept < searched.scores.numel()
    assert (searched.scores.grad != 0).float().mean() > 0.9
    assert searched.weight.grad is None


def tiny(seed: int = 0) -> Net:
    torch.manual_seed(seed)
    return Net(Arch(blocks=(1, 1, 1, 1), channels=(4, 4, 4, 4)), classes=3, bn_affine=True, head_bias=True)


def test_step_is_that_of_four_forwards():
    """Logits and statistics are those of the official order: clean, (attack), clean, adversarial, clean."""
    x, adv, y = torch.rand(5, 3, 8, 8), torch.rand(5, 3, 8, 8), torch.tensor([0, 1, 2, 0, 1])
    ours, theirs = tiny().train(), tiny().train()
    seen = []
    loss, _ = trades_step(ours, x, y, lambda: seen.append(ours.stem_norm.running_mean.clone()) or adv, 6.0)
    theirs(x)
    assert torch.allclose(seen[0], theirs.stem_norm.running_mean, atol=1e-7)  # what the attack sees
    ce, adversarial, clean = F.cross_entropy(theirs(x), y), theirs(adv), theirs(x)
    expected = ce + 6 * F.kl_div(F.log_softmax(adversarial, 1), F.softmax(clean, 1), reduction="sum") / 5
    assert torch.allclose(loss, expected, rtol=1e-5)
    for a, b in zip(ours.norms(), theirs.norms(), strict=True):
        assert torch.allclose(a.running_mean, b.running_mean, atol=1e-6)
        assert torch.allclose(a.running_var, b.running_var, atol=1e-6)
        assert a.num_batches_tracked == b.num_batches_tracked == 4
    loss.backward()
    expected.backward()
    for a, b in zip(ours.parameters(), theirs.parameters(), strict=True):
        assert torch.allclose(a.grad, b.grad, rtol=1e-3, atol=1e-5)


def test_loss_leaves_the_network_in_train_mode_without_stray_gradients():
    method = Hydra(spec_of("pretrain"), sample(), device=CPU)
    batch = next(iter(sample().train.batches(batch=24, seed=7, epoch=0, augment="none", device=CPU)))
    method.loss(batch, method.draws("step", 0, 0))
    assert method.net.training
    assert all(p.grad is None for p in method.net.parameters())


def test_radius_zero_is_plain_training():
    spec = spec_of("pretrain", eps=0)
    method = Hydra(spec, sample(), device=CPU)
    assert "beta" not in spec["options"]
    batch = next(iter(sample().train.batches(batch=24, seed=7, epoch=0, augment="none", device=CPU)))
    loss, _ = method.loss(batch, method.draws("step", 0, 0))
    assert all(norm.num_batches_tracked == 1 for norm in method.net.norms())
    assert torch.allclose(loss, F.cross_entropy(method.net(batch.x), batch.y), rtol=1e-5)


def test_tied_latents_are_told_apart_by_the_seed():
    """A layer of saturated latents has no magnitudes to go by; the seed decides, and every time alike."""
    parent = {name: tensor.clone() for name, tensor in chain("binary")["pretrain"][2].items()}
    parent["maker.head.latent"] = torch.where(parent["maker.head.latent"] >= 0, 1.0, -1.0)

    def kept(seed: int) -> torch.Tensor:
        method = Hydra({**spec_of("prune", precision="binary"), "seed": seed}, sample(), device=CPU, parent=parent)
        return method.net.head.weight != 0

    assert torch.equal(kept(1), kept(1))
    assert not torch.equal(kept(1), kept(2))


def test_a_phase_insists_on_its_parent():
    with pytest.raises(UserError, match="starts from a run of phase 'pretrain'"):
        Hydra(spec_of("prune"), sample(), device=CPU)
    with pytest.raises(UserError, match="starts from no other run"):
        Hydra(spec_of("pretrain"), sample(), device=CPU, parent={})
    with pytest.raises(UserError, match="unknown 'phase: polish'"):
        Hydra({**spec_of("prune"), "phase": "polish"}, sample(), device=CPU)


@pytest.mark.parametrize(
    ("dataset", "phase", "epochs", "lr", "batch"),
    [
        ("cifar10", "pretrain", 100, 0.1, 128),
        ("cifar10", "prune", 20, 0.1, 128),
        ("cifar100", "finetune", 100, 0.01, 128),
        ("imagenet100", "pretrain", 50, 0.1, 256),
        ("imagenet100", "prune", 10, 0.1, 256),
        ("imagenet100", "finetune", 50, 0.01, 256),
    ],
)
def test_recipe_at_scale_paper(dataset, phase, epochs, lr, batch):
    settings = at_scale_paper(dataset=dataset, phase=phase)["train"]
    expected = {"optimizer": "sgd", "lr": lr, "momentum": 0.9, "weight_decay": 1e-4, "schedule": "cosine_hydra"}
    assert settings == expected | {"epochs": epochs, "batch": batch}


def test_recipe_of_binary_and_imagenet():
    for phase in ("pretrain", "finetune"):
        settings = at_scale_paper(precision="binary", phase=phase)["train"]
        assert (settings["optimizer"], settings["lr"], settings["weight_decay"]) == ("adam", 1e-4, 5e-4)
    assert at_scale_paper(precision="binary", phase="prune")["train"]["optimizer"] == "sgd"
    large = at_scale_paper(dataset="imagenet100", phase="prune")
    assert large["attack"] == {"name": "fgsm_atta", "step": 0.5}
    assert large["normalize"]
    assert "beta" not in large["options"]
    assert at_scale_paper(dataset="imagenet100", phase="prune", p=1.0)["options"]["counts"] == "fixed"


def test_strategies_share_one_pretraining():
    planned = plan.load("paper", data_root=Path("no-such-data"))
    runs = [run.spec for run in planned.runs.values() if run.spec["method"] == "hydra" and run.spec["dataset"] == "cifar10"]
    runs = [s for s in runs if s["arch"] == "rn34" and s["precision"] == "fp" and not s["lbn"] and s["eps"] != 0]
    assert sorted(s["phase"] for s in runs) == ["finetune", "finetune", "pretrain", "prune", "prune"]
    assert {s["p"] for s in runs if s["phase"] == "finetune"} == {0.1, 1}
