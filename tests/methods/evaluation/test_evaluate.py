"""Results of an evaluation: they add up, and neither memory nor blocks change them."""

from __future__ import annotations

import json

import pytest
import torch
from torch import nn

from methods.core import eval_spec
from methods.core.errors import UserError
from methods.core.eval_result import Result, decode
from methods.evaluate import evaluate
from methods.evaluation.attacked_net import AttackedNet, View
from methods.evaluation.observer import Observer
from tests.methods.evaluation.nets import ATTACK, EPS, SPEC, images, trained

pytestmark = pytest.mark.usefixtures("network")


def test_result_counts_add_up():
    x, y = images(100)
    result = evaluate(trained(), x, y, spec={**SPEC, "block": 40})
    assert isinstance(result, Result)
    with torch.no_grad():
        right = trained()(x).max(1)[1] == y
    assert [b != "clean" for b in result.broken] == right.tolist()
    assert (result.n, result.n_clean) == (100, int(right.sum()))
    assert result.robust_acc == result.n_robust / 100 == result.after["square"]
    steps = [result.clean_acc, *result.after.values()]
    assert steps == sorted(steps, reverse=True)
    assert list(result.after) == ATTACK["attacks"]
    written = json.loads(json.dumps(result.to_json()))
    assert decode(written["broken_by"]) == result.broken
    assert eval_spec.parse(written["spec"]) == result.spec


def test_numpy_arrays_are_taken_as_well():
    x, y = images(30)
    spec = {"attack": "pgd", "eps": EPS}
    tensors = evaluate(trained(), x, y, spec=spec)
    assert evaluate(trained(), x.numpy(), y.numpy(), spec=spec).broken == tensors.broken
    # What numpy makes by itself: doubles, and labels of another width.
    assert evaluate(trained(), x.numpy().astype("float64"), y.numpy().astype("int32"), spec=spec).broken == tensors.broken
    with pytest.raises(UserError, match="must be floats of shape"):
        evaluate(trained(), (x.numpy() * 255).astype("uint8"), y, spec=spec)


def test_examples_takes_the_first_ones_and_blocks_stand_alone():
    """The first 60 of 100 examples get the answers that they get alone; another seed draws other starts."""
    x, y = images(100)
    all_of_them = evaluate(trained(), x, y, spec={**SPEC, "block": 30})
    first = evaluate(trained(), x, y, spec={**SPEC, "block": 30, "examples": 60})
    assert first.broken == all_of_them.broken[:60]
    spec = eval_spec.parse(SPEC)
    assert len({spec.block_seed(n) for n in range(1000)}) == 1000
    assert spec.block_seed(0) != eval_spec.parse({**SPEC, "seed": 4}).block_seed(0)


def test_clean_and_pgd():
    x, y = images(120)
    clean = evaluate(trained(), x, y, spec={"attack": "clean", "eps": 0})
    assert set(clean.broken) == {"none", "clean"}
    assert clean.after == {}
    assert clean.to_json()["robust_acc"] is None
    weak = evaluate(trained(), x, y, spec={"attack": "pgd", "eps": EPS, "block": 60})
    strong = evaluate(trained(), x, y, spec={"attack": {"version": "pgd", "steps": 20, "step": 0.1}, "eps": "12/255", "block": 60})
    assert clean.clean_acc == weak.clean_acc == strong.clean_acc
    assert strong.robust_acc < weak.robust_acc < weak.clean_acc
    assert weak.broken == evaluate(trained(), x, y, spec={"attack": "pgd", "eps": EPS, "block": 60}).broken


def test_the_network_is_given_back_as_it_was():
    net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 10))
    net[1].eval()
    net[4].bias.requires_grad_(False)
    before = {name: t.clone() for name, t in net.state_dict().items()}
    evaluate(net, *images(20), spec={"attack": "pgd", "eps": EPS})
    assert net.training
    assert not net[1].training
    assert net[0].weight.requires_grad
    assert not net[4].bias.requires_grad
    assert all(torch.equal(t, before[name]) for name, t in net.state_dict().items())


class Cramped(nn.Module):
    """A device with room for `room` images, as far as the caller can tell."""

    def __init__(self, room: int):
        super().__init__()
        self.room = room

    def forward(self, x):
        if len(x) > self.room:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return trained()(x)


def test_memory_errors_halve_the_batch_and_change_no_answer():
    x, y = images(60)
    ample = evaluate(Cramped(1000), x, y, spec={**SPEC, "block": 30})
    cramped = evaluate(Cramped(10), x, y, spec={**SPEC, "block": 30})
    assert cramped.broken == ample.broken
    notes = [w for w in cramped.warnings if w["kind"] == "memory"]
    assert [w["message"].split()[6] for w in notes] == ["15", "8"]
    assert ample.warnings == ()


def test_chunks_give_the_gradient_of_the_whole():
    x, _ = images(20)
    grads = []
    for chunk in (None, 7):
        net = View(AttackedNet(trained()), Observer(), chunk=chunk)
        image = x.clone().requires_grad_()
        grads.append(torch.autograd.grad(net(image).logsumexp(1).sum(), image)[0])
    torch.testing.assert_close(*grads, rtol=1e-4, atol=1e-6)


def test_no_room_for_a_single_image_is_an_error():
    with pytest.raises(UserError, match="single image"):
        evaluate(Cramped(0), *images(8), spec={"attack": "clean", "eps": 0})
