"""Learning curves of Runs: phases in their order, some epochs of long trainings, a picture on request."""

import hashlib
import json
from pathlib import Path

import pytest
from PIL import Image

from methods.core import paths, sealed
from tests.workflow.results.told import told
from workflow.suite.planning import plan
from workflow.suite.results import curve_text, history

CELL = "main_comparison.hydra.cifar10-binary"


@pytest.fixture(scope="module")
def demo():
    return plan.load("demo", data_root=Path("none"))


@pytest.fixture
def call(tmp_path, capsys):
    return lambda *words: told(capsys, "curve", *words, "--data-root", "none", "--directory", str(tmp_path))


def write(folder, run, *, epochs, best):
    """A training whose accuracies rise by equal steps up to one half."""
    values = [0.5 * (epoch + 1) / epochs for epoch in range(epochs)]
    records = [
        {"epoch": epoch, "lr": 0.1, "train_loss": 2.0, "train_acc": v, "val_clean": v, "val_robust": v} for epoch, v in enumerate(values)
    ]
    text = "".join(json.dumps(record) + "\n" for record in records)
    path = folder / paths.history(run)
    path.parent.mkdir(parents=True)
    path.write_text(text)
    sealed.write(folder / paths.train_manifest(run), {"best_epoch": best - 1, "history_sha256": hashlib.sha256(text.encode()).hexdigest()})


@pytest.fixture
def phases(demo, tmp_path):
    """Pretraining of 40 epochs, pruning of 4, fine-tuning of 2."""
    runs = [run.name for run in reversed(demo.lineage(demo.cells[CELL].runs[0]))]
    for run, epochs, best in zip(runs, (40, 4, 2), (33, 4, 1), strict=True):
        write(tmp_path, run, epochs=epochs, best=best)
    return runs


def test_bars_are_means_of_stretches_below_the_top():
    assert curve_text.bars([0.0, 0.25, 0.5, 1.0], 1.0) == "▁▃▅█"
    assert curve_text.bars([0.0, 0.5, 0.5, 1.0], 1.0, broad=2) == "▃▇"
    assert curve_text.bars([0.0, 0.0], 0.0) == "▁▁"


@pytest.mark.parametrize(
    ("last", "best", "epochs"),
    [(1, None, [1]), (3, 2, [1, 2, 3]), (9, 4, [1, 4, 5, 9]), (401, 400, [1, 201, 400, 401])],
)
def test_a_long_training_shows_some_epochs(last, best, epochs):
    assert curve_text.chosen(last, best, long=3) == epochs


def test_every_phase_is_told_in_its_order(call, phases):
    code, out, _ = call(phases[-1])
    assert code == 0
    heads = [line for line in out.splitlines() if line.endswith("epochs")]
    assert heads == [
        f"{run} ({name}): {n} epochs" for run, name, n in zip(phases, ("pretrain", "prune", "finetune"), (40, 4, 2), strict=True)
    ]
    pruned = out.split("\n\n")[3].splitlines()
    assert [line.split()[0] for line in pruned[2:6]] == ["1", "2", "3", "4"]
    assert pruned[5].split() == ["4", "0.1", "2", "50.00", "50.00", "50.00", "*"]
    assert "validation, under attack  ▃▅▇█  50.00 % at the end, at most 50.00 %" in out


def test_a_cell_names_its_runs_too(call, phases):
    assert call(CELL)[1] == call(phases[-1][-12:])[1]


def test_a_picture(call, phases, tmp_path):
    out = tmp_path / "pictures" / "curve.png"
    assert call(CELL, "--out", str(out))[1].endswith(f"\n\n{out}\n")
    with Image.open(out) as picture:
        assert "seed 1234: 50.0%" in picture.text["Description"]


def test_phases_that_are_not_trained_are_left_out(demo, tmp_path, phases):
    (tmp_path / paths.train_manifest(phases[-1])).unlink()
    assert [course.title for course in history.of_run(demo, phases[-1], tmp_path)] == ["pretrain", "prune"]


def test_a_seed_that_is_not_trained_does_not_hide_the_others(call, demo, tmp_path):
    cell = "main_comparison.ours.cifar10-binary"
    first, second = plan.load("demo", data_root=Path("none"), seeds=[1, 2]).cells[cell].runs
    write(tmp_path, second, epochs=2, best=1)
    code, out, _ = call(cell, "--seeds", "1,2")
    assert code == 0
    assert out.startswith(f"{second} ")
    assert out.endswith(f"\n\n{first}: not trained yet\n")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([CELL], "is not trained yet, and a history is written at the end"),
        (["foo"], "no Run of scale 'demo' match 'foo'"),
    ],
)
def test_wrong_input_is_one_line(call, words, message):
    code, _, err = call(*words)
    assert code == 2
    assert message in err
    assert err.count("\n") == 1


def test_another_kind_of_picture_is_refused(call, phases):
    assert "'jpg' is no kind of picture; allowed: png, pdf" in call(CELL, "--out", "curve.jpg")[2]
