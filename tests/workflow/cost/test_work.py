"""The work that is counted against what really runs."""

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry

from methods.core import architectures, eval_spec
from methods.core.datasets import DATASETS
from methods.data import load
from methods.networks import resnet
from methods.training.loop import train
from methods.training.resume import Resume
from tests.baselines.toy_runs import make
from tests.specs import small
from tests.workflow.cost.plans import planned
from workflow.suite.cost import work


def counted(arch, width, image):
    """Weights, multiplications and output elements of the real network, by running it without numbers."""
    layers = []
    with torch.device("meta"):
        net = resnet.build(arch, classes=100, stem="imagenet" if image > 32 else "cifar", width=width)
        for _, conv in net.convs():
            conv.register_forward_hook(
                lambda m, _, out: layers.append((m.weight.numel(), 2 * m.weight[0].numel() * out.numel(), out.numel()))
            )
        net.eval()(torch.zeros(1, 3, image, image))
    return len(layers), *(sum(column) for column in zip(*layers, strict=True))


@pytest.mark.parametrize("arch", sorted(architectures.ARCHS))
def test_networks_are_those_that_are_trained(arch):
    for width in (1, 0.125):
        for image in (32, 224):
            net = architectures.network({"arch": arch, "width": width}, classes=100, image=image)
            assert (len(net.layers), net.weights, net.flops, net.elements) == counted(arch, width, image)


class Flops(TorchDispatchMode):
    """Multiplications and additions of every operation, forward and backward, by torch's own formulas."""

    total = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        if formula := flop_registry.get(function.overloadpacket):
            self.total += formula(*args, **(kwargs or {}), out_val=result)
        return result


STEPS = [
    ("binary_subnet", {}),
    ("binary_subnet", {"attack": {"name": "fgsm_atta"}}),
    ("at", {"eps": 0}),
    ("rst", {}),
    ("trades", {"precision": "fp"}),
    ("hydra", {"phase": "prune"}),
    ("atmc", {"phase": "factorised"}),
    ("bcs", {}),
]


@pytest.mark.parametrize(("method", "keys"), STEPS, ids=lambda item: item if isinstance(item, str) else "-".join(map(str, item)) or "plain")
def test_a_training_does_the_work_that_is_predicted(tmp_path, method, keys):
    """The multiplications of a real training, counted where they are computed. A pass more or less is a tenth or so."""
    spec = small(method, arch="rn18", rewrite={"train.epochs": 1, "width": 0.125}, **keys)
    data = load.load("cifar10", source="sample", train=spec["data"]["train"], val=spec["data"]["val"])
    trained = make(method, spec, data)
    with Flops() as counter:
        train(trained, data, resume=Resume(tmp_path, "x"), log=lambda _: None)
    assert counter.total == pytest.approx(work.training(spec).flops, rel=0.04)


@pytest.mark.parametrize(
    "attack",
    [
        "standard",
        "clean",
        "pgd",
        {"version": "custom", "attacks": ["apgd-ce", "fab", "square", "apgd-dlr"], "apgd_iter": 7, "square_queries": 11, "restarts": 2},
        {"version": "custom", "attacks": ["apgd-t", "fab-t"], "fab_iter": 5, "targets": 3},
    ],
)
def test_attacks_cost_what_the_evaluation_says(attack):
    real = eval_spec.parse({"attack": attack}).attack
    assert work.attack_passes(attack) == {name: real.cost(name) for name in real.names}


@pytest.mark.parametrize(("dataset", "source"), [("cifar10", "sample"), ("cifar100", "stand-in"), ("imagenet100", "stand-in")])
def test_images_are_counted_as_they_are_split(dataset, source):
    real, facts = load.load(dataset, source=source), DATASETS[dataset]
    assert facts.counts({"source": source}) == (len(real.train), len(real.val))
    assert facts.counts({"source": source, "train": 9, "val": 5}) == (9, 5)
    assert (facts.test[source], facts.classes, facts.image) == (len(real.test), real.classes, real.shape[1])


def test_an_evaluation_costs_most_when_nothing_falls():
    run = planned("paper").final_runs("main_comparison")[0]
    spec, chosen = planned("paper").runs[run].spec, planned("paper").evaluations[run].spec
    worst = work.evaluation(spec, chosen)
    assert worst.flops == 10000 * work.network(spec).flops * (1 + 200 + 1800 + 2700 + 5000)
    half = work.evaluation(spec, chosen, right=0.5, robust=0.5)
    assert work.evaluation(spec, chosen, right=0.5, robust=0.0).flops < half.flops < worst.flops
