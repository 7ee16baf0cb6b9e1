"""Work of blocks that are not finished."""

from __future__ import annotations

import pytest

from methods.core import eval_spec
from methods.evaluation.attacked_net import attacked
from methods.evaluation.runner import Runner
from methods.evaluation.unfinished import Store, Work
from methods.runtime.progress import Progress
from tests.methods.evaluation.nets import ATTACK, SPEC, images, trained

pytestmark = pytest.mark.usefixtures("network")


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
