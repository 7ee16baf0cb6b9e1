"""A training step does not wait for the device, but where it says so; its network is one graph."""

from __future__ import annotations

import pytest
import torch

from methods.attacks.pgd import loss_and_sign
from methods.data.split import Batch
from methods.distributed.world import ALONE
from methods.training.optim import optimizer
from methods.training.step import step
from tests.baselines.toy_runs import CASES, make, sample, toy
from tests.methods.training.waiting import Waiting

# What waits by its nature. BCS must know how many connections died to draw as many. The others update on a schedule, every tenth step or
# every thousandth, and the toy schedule at each.
KNOWN = {
    "bcs": {"baselines/bcs.py: rewire", "methods/pruning/connections.py: requests"},
    "flyingbird": {"methods/pruning/topology.py: " + name for name in ("survivors", "grown_randomly", "update")},
    "atmc-quantised": {"methods/pruning/codebook.py: " + name for name in ("fit", "fittable", "seed_positions")},
}


def waits_of(built) -> dict[str, int]:
    built.optimizer = optimizer(built.trainables(), built.spec["train"])
    for number, batch in enumerate(sample().train.batches(batch=24, seed=1, augment=built.augment)):
        with Waiting() as places:
            step(built, batch, 0, number, ALONE)
        if number == 1:  # not the first, which makes the optimiser's state
            return places
    raise AssertionError("too few batches")


@pytest.mark.parametrize(("name", "variant"), CASES)
def test_a_step_waits_only_where_it_says_so(name, variant):
    built = make(name, toy(name, variant))
    label = f"{name}-{variant['phase']}" if f"{name}-{variant['phase']}" in KNOWN else name
    assert set(waits_of(built)) <= KNOWN.get(label, set())


def test_global_pruning_does_not_wait():
    built = make("binary_subnet", toy("binary_subnet", {"phase": None, "precision": "binary", "attack": {"name": "pgd"}}) | {"p": "global"})
    assert not waits_of(built)


def test_the_schedules_of_whole_runs_are_far_apart():
    """The exceptions above are rare in earnest: of a thousand steps of FlyingBird one waits, of ten of ATMC's last phase one."""
    birds = make("flyingbird", toy("flyingbird", {"phase": None, "precision": "fp", "attack": {"name": "pgd"}}))
    birds.options["update_every"] = [900, 1200]
    assert not waits_of(birds)


@pytest.mark.parametrize(
    "read",
    [
        lambda t: t.sum().item(),
        lambda t: t.tolist(),
        lambda t: bool((t > 0).any()),
        lambda t: int(t.sum()),
        lambda t: t[t > 0],
        lambda t: t.nonzero(),
        lambda t: torch.masked_select(t, t > 0),
        lambda t: t.unique(),
        lambda t: t.long().bincount(),
        lambda t: t.clone().index_put_((t > 0,), torch.ones(3)),
    ],
)
def test_every_way_to_wait_is_noticed(read):
    with Waiting() as places:
        read(torch.ones(3))
    assert places


def test_what_does_not_wait_is_not_noticed():
    with Waiting() as places:
        t = torch.ones(4, 4)
        torch.where(t > 0, t, -t)[torch.tensor([1, 2])].topk(2).values.masked_fill_(torch.ones(2, 2) > 0, 1).sum()
    assert not places


def test_a_network_is_one_graph_in_both_formats():
    built = make("at", toy("at", {"phase": None, "precision": "fp", "attack": {"name": "pgd"}}))
    batch: Batch = next(sample().train.batches(batch=4))
    for lowered in (False, True):
        built.net.lowered = lowered
        torch._dynamo.reset()
        explained = torch._dynamo.explain(built.net.train())(batch.x)
        assert explained.graph_count == 1
        assert explained.graph_break_count == 0


def test_a_step_of_the_attack_is_one_graph():
    """So it can be captured or compiled. Nothing in the suite does: compilers change the last digits, and no GPU was at hand for graphs."""
    built = make("at", toy("at", {"phase": None, "precision": "fp", "attack": {"name": "pgd"}}))
    batch: Batch = next(sample().train.batches(batch=4))
    torch._dynamo.reset()
    with torch._dynamo.config.patch(trace_autograd_ops=True):
        explained = torch._dynamo.explain(lambda x, y: loss_and_sign(built.net, x, y))(batch.x, batch.y)
    assert explained.graph_count == 1
    assert explained.graph_break_count == 0
