"""The evaluation gives the library's answers, whichever way it is asked."""

from __future__ import annotations

import io
import json

import pytest
import torch
from pyautoattack import AutoAttack
from torch import nn

from methods.bench.evaluate import main as bench
from methods.core import eval_spec
from methods.core.errors import UserError
from methods.core.eval_result import Result, decode
from methods.evaluate import evaluate
from methods.evaluation.attacked_net import AttackedNet, View, attacked
from methods.evaluation.block import attack_block, library, plain_block
from methods.evaluation.observer import Observer
from methods.evaluation.runner import Runner
from methods.evaluation.unfinished import Store, Work
from methods.runtime.progress import Progress
from tests.methods.evaluation.nets import ATTACK, EPS, SPEC, images, one_thread, trained


@pytest.fixture(autouse=True, scope="module")
def network():
    """Trained before anything is attacked: the networks below call it where gradients are off."""
    with one_thread():
        yield trained()


def broken_and_robust(attack: dict, *, fast: bool, count: int = 80, **change) -> tuple[list[str], list[bool]]:
    """Our answers and the plain library's, on one block."""
    x, y = images(count)
    spec = eval_spec.parse({**SPEC, "attack": attack, **change})
    robust = plain_block(trained(), x, y, spec=spec, seed=11).tolist()
    with attacked(trained(), fast=fast) as net:
        return attack_block(net, x, y, spec=spec, seed=11, observer=Observer()), robust


@pytest.mark.parametrize("fast", [True, False])
def test_same_answers_as_a_plain_call_of_the_library(fast):
    broken, robust = broken_and_robust(ATTACK, fast=fast)
    assert [b == "none" for b in broken] == robust
    # The comparison would say little if one kind of answer were missing.
    assert {"none", "clean", "apgd-ce"} <= set(broken)


@pytest.mark.parametrize(
    "attack",
    [
        {"version": "custom", "attacks": ["apgd-dlr"], "apgd_iter": 6, "restarts": 3},
        {"version": "custom", "attacks": ["fab"], "fab_iter": 3, "restarts": 2},
        {"version": "custom", "attacks": ["square"], "square_queries": 150},
        {"version": "custom", "attacks": ["apgd-t"], "apgd_iter": 5, "targets": 9},
        {"version": "custom", "attacks": ["fab-t"], "fab_iter": 10, "targets": 4},
    ],
    ids=lambda attack: attack["attacks"][0],
)
def test_each_attack_alone_agrees_with_the_library(attack):
    broken, robust = broken_and_robust(attack, fast=False)
    assert [b == "none" for b in broken] == robust
    assert attack["attacks"][0] in broken


def test_l2_agrees_with_the_library():
    attack = {"version": "custom", "attacks": ["apgd-ce", "apgd-t"], "apgd_iter": 6, "targets": 3}
    broken, robust = broken_and_robust(attack, fast=True, norm="L2", eps=0.3)
    assert [b == "none" for b in broken] == robust
    assert {"none", "apgd-ce"} <= set(broken)


def test_standard_version_is_the_librarys():
    """Settings of the object that "standard" drives are those that the library sets for its standard version."""
    spec = eval_spec.parse({"attack": "standard"})
    net = trained()
    ours, theirs = library(net, spec, 5), AutoAttack(net, norm="Linf", eps=8 / 255, seed=5, version="standard")
    assert ours.attacks_to_run == theirs.attacks_to_run
    for part in ("apgd", "apgd_targeted", "fab", "square"):
        mine, library_part = vars(getattr(ours, part)), vars(getattr(theirs, part))
        assert mine.keys() == library_part.keys()
        assert {k: v for k, v in mine.items() if k != "logger"} == {k: v for k, v in library_part.items() if k != "logger"}


def test_the_sieve_spares_work():
    """Rows that are broken are not computed again: fewer images pass through the network than in a plain call."""
    seen = []

    class Counting(nn.Module):
        def forward(self, x):
            seen.append(len(x))
            return trained()(x)

    x, y = images(60)
    spec = eval_spec.parse({"attack": {"version": "custom", "attacks": ["apgd-ce"], "apgd_iter": 10}, "eps": "16/255"})
    plain_block(Counting(), x, y, spec=spec, seed=1)
    plain, seen[:] = sum(seen), []
    broken = attack_block(AttackedNet(Counting()), x, y, spec=spec, seed=1, observer=Observer())
    assert "apgd-ce" in broken
    assert sum(seen) < 0.8 * plain


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


class Randomised(nn.Module):
    def forward(self, x):
        return trained()(x + 0.2 * torch.rand_like(x))


class Probabilities(nn.Module):
    def forward(self, x):
        return trained()(x).softmax(1)


class Flat(nn.Module):
    """Logits without any gradient."""

    def forward(self, x):
        return (trained()(x) * 2).round() + 0 * x.flatten(1)[:, :10]


class Dynamic(nn.Module):
    def forward(self, x):
        with torch.enable_grad():
            moved = x.detach().clone().requires_grad_()
            (grad,) = torch.autograd.grad(trained()(moved).sum(), moved)
        return trained()(x + 0 * grad)


@pytest.mark.parametrize(
    ("net", "kind"), [(Randomised, "randomized"), (Probabilities, "probabilities"), (Flat, "zero_gradient"), (Dynamic, "dynamic")]
)
def test_warnings_of_the_library_are_data(net, kind):
    attack = {"version": "custom", "attacks": ["apgd-t"], "apgd_iter": 2, "targets": 1}
    result = evaluate(net(), *images(60), spec={"attack": attack, "eps": EPS, "block": 30})
    found = [w for w in result.warnings if w["kind"] == kind]
    # Properties of the network are looked at once, in the first block, as the library does in its first batch.
    assert found
    assert sorted({n for w in found for n in w["blocks"]}) == ([0, 1] if kind == "zero_gradient" else [0])
    assert all("flags_doc" not in w["message"] for w in found)
    # The library's own counters outlive a call; the next network must not inherit the verdict.
    quiet = evaluate(trained(), *images(60), spec={"attack": attack, "eps": EPS, "block": 30})
    assert quiet.warnings == ()


def test_square_warning_looks_at_all_examples():
    """Square alone breaks points of a network whose gradients are useless; the library's check says so, once."""
    attack = {"version": "custom", "attacks": ["apgd-ce", "square"], "apgd_iter": 2, "square_queries": 40}
    result = evaluate(Flat(), *images(60), spec={"attack": attack, "eps": "12/255", "block": 30})
    assert result.after["square"] < result.after["apgd-ce"]
    assert [w["attack"] for w in result.warnings if w["kind"] == "square"] == ["square"]


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


def test_progress_claims_a_time_only_as_far_as_it_is_known():
    log, now = io.StringIO(), [0.0]
    progress = Progress(100, log, passes=50, clock=lambda: now[0])
    assert progress.left is None
    progress.block(20, 5, computed=0.0)  # taken over from an earlier run: says nothing about speed
    assert progress.left is None
    progress.attack("apgd-ce", 1, 20, 10, passes=500)
    now[0] = 8.0
    progress.tick(100)  # 0.08 s a pass: at most 400 here, and 60 more examples of 50 each
    assert progress.left == (pytest.approx((400 + 60 * 50) * 0.08), True)
    assert log.getvalue() == ""  # a log is not flooded
    now[0] = 40.0
    progress.attack("square", 1, 20, 2, passes=100)
    assert log.getvalue() == "20/100 examples, 5 of them unbroken, at most 21 min left (block 1: square on 2 of 20)\n"
    progress.block(20, 5, computed=40.0)
    assert progress.left == (pytest.approx(60 * 40 / 20), False)
    progress.block(60, 1, computed=1.0)
    assert log.getvalue().splitlines()[1:] == ["100/100 examples, 11 of them unbroken"]


class Counter(Observer):
    """Counts passes."""

    count = 0

    def passes(self, count: int) -> None:
        self.count += count


@pytest.mark.parametrize("name", ATTACK["attacks"])
def test_cost_is_a_bound_that_is_nearly_reached(name):
    """On points that nothing breaks an attack costs what the progress report says, but for a few passes of its own."""
    x, y = images(100)
    with torch.no_grad():
        right = trained()(x).max(1)[1] == y
    x, y = x[right], y[right]
    spec = eval_spec.parse({"attack": {**ATTACK, "attacks": [name]}, "eps": 1e-6})
    net, observer = AttackedNet(trained()), Counter()
    assert not any(p.requires_grad for p in net.dense.parameters())
    assert set(attack_block(net, x, y, spec=spec, seed=0, observer=observer, check=False)) == {"none"}
    assert spec.attack.cost(name) <= observer.count / len(x) <= 1.35 * spec.attack.cost(name) + 3


def test_unfinished_blocks_are_kept_per_attack(tmp_path):
    """State is saved after each attack under a name that holds all that decides the answers; damage costs time only."""
    x, y = images(30)
    spec = eval_spec.parse({**SPEC, "block": 30})
    store = Store(folder=tmp_path / "work", model="m")
    path = store.path(spec, 0, x, y)
    others = [
        Store(folder=tmp_path / "work", model="n").path(spec, 0, x, y),
        store.path(eval_spec.parse({**SPEC, "block": 30, "seed": 4}), 0, x, y),
        store.path(spec, 1, x, y),
        store.path(spec, 0, x.flip(0), y),
        store.path(spec, 0, x, y.flip(0)),
    ]
    assert len({path, *others}) == 6
    assert store.path(eval_spec.parse({**SPEC, "block": 30, "examples": 30}), 0, x, y) == path

    def blocks() -> tuple[str, ...]:
        with attacked(trained()) as net:
            return Runner(net=net, spec=spec, progress=Progress(30, None)).block(0, x, y, Work.resume(spec, path)).broken

    answers = blocks()
    assert Work.resume(spec, path).done == ATTACK["attacks"]
    assert blocks() == answers
    path.write_text(path.read_text()[:40])
    assert Work.resume(spec, path).done == []
    assert blocks() == answers
    store.clear([path])
    assert not (tmp_path / "work").exists()


def test_bench_compares_answers_and_speeds_also_where_nothing_can_be_spared(tmp_path):
    out = tmp_path / "bench.json"
    assert bench(["--width", "0.0625", "--epochs", "1", "--examples", "30", "--repeats", "1", "--out", str(out)]) == 0
    found = json.loads(out.read_text())["cases"]
    assert list(found) == ["any module", "any module, nothing breaks", "network of this suite"]
    for case in found.values():
        assert case["disagreements"] == 0
        assert case["ratio"]["n"] == 1
        assert case["ratio"]["min"] > 0
    assert found["any module"]["robust"] < found["any module, nothing breaks"]["robust"] == 30
