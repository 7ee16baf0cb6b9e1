"""When the engine computes: where it can and pays, where SUITE_ENGINE insists, and never to anybody's harm."""

from __future__ import annotations

import copy
import os
import subprocess
import sys

import pytest
import torch
from torch import nn

from methods.core.errors import UserError
from methods.distributed.synced_norm import SyncedNorm
from methods.sparse import choice
from methods.sparse.calibration import Calibration, calibration, measure
from methods.sparse.choice import COMPILED, DENSE, SPARSE, choose, computed_by, gain, insisted, quick_form, taken_up
from tests.methods.sparse.nets import images, pruned

MANY = 1e12  # images that make any start pay


@pytest.fixture
def engine(monkeypatch):
    def insist(name: str) -> None:
        monkeypatch.setenv("SUITE_ENGINE", name)

    insist("auto")
    return insist


@pytest.fixture
def machine(monkeypatch):
    """A machine on which lists break even at half of the weights, and all weights take as long as torch."""
    monkeypatch.setattr("methods.sparse.calibration.calibration", lambda: Calibration(break_even=0.5, dense=1.0))


def test_networks_of_many_zeros_and_enough_work(engine, machine):
    assert choose(pruned(sparsity=0.99), MANY, side=32) == SPARSE
    assert choose(pruned(sparsity=0.99), 1, side=32) == DENSE
    assert choose(pruned(sparsity=0.0), MANY, side=32) == DENSE


def test_gain_by_hand(machine):
    """Stem 3 x 4 x 9 weights on 32 x 32 positions, all kept; every other layer has none: only the stem's work is left."""
    net = pruned(width=0.0625, sparsity=0.0)
    with torch.no_grad():
        for name, conv in net.convs():
            conv.weight.fill_(float(name == "stem"))
    stem, every = 108 * 1024, sum(work for work, _ in choice.work(net, 32))
    assert every > stem
    assert gain(net, 32) == pytest.approx(every / stem)


def test_a_setting_insists(engine):
    engine("dense")
    assert choose(pruned(sparsity=0.99), MANY, side=32) == DENSE
    engine("sparse")
    assert choose(pruned(sparsity=0.0), 1, side=32) == SPARSE
    engine("fast")
    with pytest.raises(UserError, match="SUITE_ENGINE=fast"):
        choose(pruned(), 1, side=32)


def test_what_it_cannot_compute(engine):
    engine("sparse")
    assert choose(nn.Linear(2, 2), MANY, side=32) == DENSE
    assert choose(pruned().double(), MANY, side=32) == DENSE
    net = pruned()
    net.blocks[0].norms[0].__class__ = SyncedNorm
    assert choose(net, MANY, side=32) == DENSE
    assert quick_form(nn.Linear(2, 2), MANY, side=32) is None


def test_a_machine_that_cannot_says_so_once_and_computes_densely(engine, monkeypatch, capsys):
    monkeypatch.setattr(choice, "lacking", lambda: "numba is not installed")
    choice._say_once.cache_clear()
    for _ in range(2):
        assert choose(pruned(sparsity=0.99), MANY, side=32) == DENSE
    assert capsys.readouterr().err.count("numba is not installed: networks of many zeros are computed densely") == 1
    engine("sparse")
    with pytest.raises(UserError, match="SUITE_ENGINE=sparse: numba is not installed"):
        choose(pruned(sparsity=0.99), MANY, side=32)


def test_a_run_goes_on_with_the_engine_that_it_began_with(engine, monkeypatch):
    assert taken_up(SPARSE, DENSE) == SPARSE
    assert taken_up(DENSE, SPARSE) == DENSE
    engine("dense")
    assert taken_up(SPARSE, DENSE) == DENSE
    engine("auto")
    monkeypatch.setattr(choice, "lacking", lambda: "something")
    assert taken_up(SPARSE, DENSE) == DENSE


def test_training_can_be_compiled_and_evaluation_is_not(engine, monkeypatch):
    """By torch's own tracing, without its code generator: what it makes of the graph is torch's business, and takes a minute."""
    assert insisted() is None
    engine("compiled")
    assert insisted() == COMPILED
    assert choose(pruned(sparsity=0.99), MANY, side=32) == DENSE
    made, compile_ = [], torch.compile
    monkeypatch.setattr(torch, "compile", lambda function: made.append(function) or compile_(function, backend="aot_eager", fullgraph=True))
    net, (x, y) = pruned(width=0.125), images(3)
    twin = copy.deepcopy(net)
    for _ in range(2):
        x.requires_grad_()
        with computed_by(COMPILED, net):
            ours = nn.functional.cross_entropy(net(x), y)
        theirs = nn.functional.cross_entropy(twin(x), y)
        assert ours.item() == pytest.approx(theirs.item(), rel=1e-5)
        for a, b in zip(*(torch.autograd.grad(loss, [x, n.stem.weight]) for loss, n in ((ours, net), (theirs, twin))), strict=True):
            assert torch.allclose(a, b, rtol=1e-3, atol=1e-6)
    assert len(made) == 1
    assert net.engine is None
    assert torch.allclose(net.stem_norm.running_mean, twin.stem_norm.running_mean)


def test_inside_the_engine_computes_and_outside_torch(monkeypatch):
    net, (x, _) = pruned(width=0.125).eval(), images(3)
    with torch.no_grad():
        theirs = net(x)
        with computed_by(SPARSE, net):
            assert net.engine is not None
            ours = net(x)
        assert net.engine is None
        with computed_by(DENSE, net):
            assert net.engine is None
        form = quick_form(net, MANY, side=32) if choose(net, MANY, side=32) == SPARSE else choice.QuickForm(net)
        assert torch.equal(form(x), ours)
    assert torch.allclose(ours, theirs, rtol=1e-3, atol=1e-4)
    net.lowered = True
    with computed_by(SPARSE, net):
        assert net.engine is None  # bfloat16 is torch's


def test_a_copy_and_a_file_know_nothing_of_it(tmp_path):
    net, (x, _) = pruned(width=0.125).eval(), images(2)
    with computed_by(SPARSE, net), torch.no_grad():
        net(x)
    assert copy.deepcopy(net).engine is None
    assert not [key for key in net.state_dict() if "engine" in key]


def test_the_calibration_is_kept(tmp_path, monkeypatch):
    monkeypatch.setattr("methods.sparse.calibration.FOLDER", tmp_path)
    monkeypatch.setattr("methods.sparse.calibration.measure", lambda: Calibration(break_even=0.4, dense=1.5))
    calibration.cache_clear()
    try:
        assert calibration() == Calibration(break_even=0.4, dense=1.5)
        monkeypatch.setattr("methods.sparse.calibration.measure", lambda: pytest.fail("measured again"))
        calibration.cache_clear()
        assert calibration() == Calibration(break_even=0.4, dense=1.5)
        monkeypatch.setattr("methods.sparse.calibration.measure", lambda: Calibration(break_even=0.3, dense=1.0))
        for broken in ("{", '{"break_even": 1}', "[]"):
            (tmp_path / "calibration.json").write_text(broken)
            calibration.cache_clear()
            assert calibration().break_even == 0.3
    finally:
        calibration.cache_clear()


def test_measuring_gives_a_density():
    measured = measure()
    assert 0.1 <= measured.break_even <= 0.95
    assert measured.dense > 0


def test_importing_the_choice_does_not_import_numba():
    code = "import sys, methods.train, methods.evaluation.runner; sys.exit('numba' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("folder", ["/dev/null/no", "/proc/no"])
def test_a_cache_folder_that_cannot_be_written_is_no_trouble(folder):
    code = (
        "import numpy as np; from methods.sparse import jit; from methods.sparse.lists import Kept;"
        "assert jit.FOLDER is None; print(Kept(np.eye(4, dtype=np.float32).reshape(2, 2, 2, 2)).value.sum())"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, "NUMBA_CACHE_DIR": folder}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "4.0"


def test_a_forked_child_computes_with_threads_of_its_own():
    """As under methods/warm.py, but worse: the parent has used the engine, with two threads, before it forks."""
    net, (x, _) = pruned(width=0.125).eval(), images(33)
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        with torch.no_grad(), computed_by(SPARSE, net):
            expected = net(x)
            child = os.fork()
            if child == 0:
                os._exit(0 if torch.equal(net(x), expected) else 1)
            _, status = os.waitpid(child, 0)
    finally:
        torch.set_num_threads(before)
    assert os.waitstatus_to_exitcode(status) == 0
