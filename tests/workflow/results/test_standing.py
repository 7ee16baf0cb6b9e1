"""Where Runs stand: from files that real trainings leave, and from those of accidents."""

import io
import json
import os
import platform
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from methods.core import paths, sealed
from methods.runtime.heartbeat import FILE_SECONDS, Heartbeat
from methods.runtime.stopwatch import Stopwatch
from tests.specs import small, text
from workflow.suite.__main__ import main
from workflow.suite.planning import plan
from workflow.suite.planning.config import ROOT
from workflow.suite.planning.plan import Plan, Run
from workflow.suite.results import made, signs_of_life, standing

RUN = "tiny.0123456789ab"
START = time.time()


@pytest.fixture(scope="module")
def demo():
    return plan.load("demo", data_root=Path("no-such-data"))


def put(folder, name, value):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(value, str):
        path.write_text(value)
    else:
        sealed.write(path, value)
    return path


def progress(**changes):
    value = {
        "epochs": 4,
        "steps": 10,
        "done": 15,
        "begun": 5,
        "started": START,
        "updated": START + 100,
        "pid": os.getpid(),
        "host": platform.node(),
    }
    return value | changes


def dead_pid():
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def test_time_left_is_told_from_the_steps_of_this_process(demo, tmp_path):
    run = demo.final_runs()[0]
    put(tmp_path, paths.progress(run), progress())
    seen = standing.of_run(demo, run, tmp_path, now=START + 102)
    # 10 steps in 100 s; 25 are ahead
    assert seen == standing.Standing(stage="training", note="epoch 2/4, step 5/10, about 4 min left, seen 2 s ago")


@pytest.mark.parametrize(
    ("changes", "now", "stage"),
    [
        ({"host": "elsewhere"}, START + 100 + signs_of_life.SILENT - 1, "training"),
        ({"host": "elsewhere"}, START + 100 + signs_of_life.SILENT + 1, "stopped"),
        ({"pid": None}, START + 101, "stopped"),
    ],
    ids=["heard of", "silent", "dead"],  # times of day differ between the processes of a test run
)
def test_silence_and_death_stop_a_run(demo, tmp_path, changes, now, stage):
    run = demo.final_runs()[0]
    changes = {"pid": dead_pid()} if changes == {"pid": None} else changes
    put(tmp_path, paths.progress(run), progress(**changes))
    seen = standing.of_run(demo, run, tmp_path, now=now)
    assert seen.stage == stage
    assert seen.note.startswith("epoch 2/4, step 5/10")


def test_another_process_with_the_number_of_a_dead_one_is_not_the_training(demo, tmp_path):
    run = demo.final_runs()[0]
    born = psutil.Process().create_time()
    for updated, stage in ((born - 60, "stopped"), (born + 60, "training")):
        put(tmp_path, paths.progress(run), progress(started=updated - 100, updated=updated))
        assert standing.of_run(demo, run, tmp_path).stage == stage


@pytest.mark.parametrize("line", ["error: this scale needs a GPU", "torch.OutOfMemoryError: CUDA out of memory", "ValueError: x"])
def test_a_failed_training_tells_its_last_line(demo, tmp_path, line):
    run = demo.final_runs()[0]
    put(tmp_path, paths.progress(run), progress(pid=dead_pid()))
    put(tmp_path, paths.log("train", run), f"epoch 1/4  loss 2.3\nTraceback:\n{line}\n")
    assert standing.of_run(demo, run, tmp_path) == standing.Standing(stage="failed", note=f"{line} ({paths.log('train', run)})")


def test_stages_between_training_and_evaluation(demo, tmp_path):
    run = demo.final_runs()[0]
    evaluation = demo.evaluations[run].id
    assert standing.of_run(demo, run, tmp_path).stage == "waiting"
    log = put(tmp_path, paths.log("train", run), "")
    assert standing.of_run(demo, run, tmp_path) == standing.Standing(stage="training", note="starting")
    put(tmp_path, f"{paths.state_folder(run)}/lock", "")
    assert standing.of_run(demo, run, tmp_path, now=log.stat().st_mtime + 1000).stage == "stopped"
    put(tmp_path, paths.train_manifest(run), {})
    assert standing.of_run(demo, run, tmp_path).stage == "trained"
    log = put(tmp_path, paths.log("evaluate", run, evaluation), "10/64 examples, about 3 min left\n")
    assert standing.of_run(demo, run, tmp_path) == standing.Standing(stage="evaluating", note="10/64 examples, about 3 min left")
    assert standing.of_run(demo, run, tmp_path, now=log.stat().st_mtime + 1000).stage == "stopped"
    log.write_text("error: model.safetensors: no such file\n")
    assert standing.of_run(demo, run, tmp_path).stage == "failed"
    result = {"clean_acc": 0.5, "n": 2, "n_clean": 1}
    put(tmp_path, paths.evaluation(run, evaluation), result)
    assert "does not record the code" in standing.of_run(demo, run, tmp_path).note
    put(tmp_path, paths.train_manifest(run), {"provenance": {"files": {}}})
    put(tmp_path, paths.shard(run, evaluation, 1, 1), {"provenance": {"files": {}}})
    assert standing.of_run(demo, run, tmp_path) == standing.Standing(stage="evaluated")
    put(tmp_path, paths.shard(run, evaluation, 1, 1), {"provenance": {"files": {"methods/gone.py": "0"}}})
    assert standing.of_run(demo, run, tmp_path) == standing.Standing(stage="stale", note="methods/gone.py has changed")
    put(tmp_path, paths.evaluation(run, evaluation), "{")
    assert standing.of_run(demo, run, tmp_path).stage == "failed"


def test_a_shard_that_is_finished_does_not_count_as_running(tmp_path):
    paper = plan.load("paper", data_root=tmp_path)
    run = paper.final_runs()[0]
    chosen = paper.evaluations[run]
    assert chosen.shards == 4
    put(tmp_path, paths.train_manifest(run), {})
    put(tmp_path, paths.log("evaluate", run, chosen.id, "2-of-4"), "error: no\n")
    assert standing.of_run(paper, run, tmp_path).stage == "failed"
    put(tmp_path, paths.shard(run, chosen.id, 2, 4), {})
    assert standing.of_run(paper, run, tmp_path).stage == "trained"


def test_status_counts_cells_by_what_their_runs_and_parents_do(demo, tmp_path, capsys):
    def line(name):
        assert main(["status", "--directory", str(tmp_path), "--data-root", "no-such-data"]) == 0
        out = capsys.readouterr().out
        return out, dict(
            zip(standing.CELLS, map(int, next(x.split() for x in out.splitlines() if x.startswith(f"{name} "))[1:]), strict=True)
        )

    child = demo.final_runs("main_comparison", "hydra")[0]
    parent = demo.lineage(child)[1].name
    cells = sum(any(parent in [r.name for r in demo.lineage(run)] for run in cell.runs) for cell in demo.cells_of("main_comparison"))
    _, before = line("main_comparison")
    assert before["running"] == 0
    assert before["missing"] > cells
    put(tmp_path, paths.progress(parent), progress())
    out, during = line("main_comparison")
    assert during["running"] == cells
    assert f"training: {parent}: epoch 2/4" in out
    put(tmp_path, paths.progress(parent), progress(pid=dead_pid()))
    put(tmp_path, paths.log("train", parent), "error: no luck\n")
    out, after = line("main_comparison")
    assert after["failed"] == cells
    assert f"failed: {parent}: error: no luck (" in out
    assert sum(after.values()) == sum(before.values()) == len(demo.cells_of("main_comparison"))


def test_heartbeat_is_rare_and_harmless(tmp_path):
    now = [0.0]
    path = tmp_path / "state" / "progress.json"
    Heartbeat(path, epochs=1, steps=2, clock=lambda: now[0], stream=None).beat(1)  # no folder: nothing happens
    path.parent.mkdir()
    heart = Heartbeat(path, epochs=2, steps=10, done=4, clock=lambda: now[0], stream=None)
    assert json.loads(path.read_text())["done"] == 4
    now[0] = FILE_SECONDS / 2
    heart.beat(5)
    assert json.loads(path.read_text())["done"] == 4
    now[0] = FILE_SECONDS
    heart.beat(6)
    value = json.loads(path.read_text())
    assert (value["done"], value["begun"], value["updated"]) == (6, 4, FILE_SECONDS)
    assert [item.name for item in path.parent.iterdir()] == ["progress.json"]


def test_a_terminal_gets_one_line_and_a_log_none(tmp_path):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    now, terminal, log = [0.0], Terminal(), io.StringIO()
    for stream in (terminal, log):
        now[0] = 0.0
        heart = Heartbeat(tmp_path / "progress.json", epochs=2, steps=10, clock=lambda: now[0], stream=stream)
        now[0] = 60.0
        heart.beat(5)
        heart.clear()
    assert terminal.getvalue().endswith("\r\033[Kepoch 1/2, step 5/10, about 3 min left\r\033[K")
    assert "\n" not in terminal.getvalue()
    assert log.getvalue() == ""


def test_time_adds_up_over_restarts():
    import torch

    watch = Stopwatch(torch.device("cpu"))
    watch.resume({"wall_seconds": 100.0, "device_seconds": 50.0})
    spent = watch.read()
    assert 100 <= spent["wall_seconds"] < 160
    assert 50 <= spent["device_seconds"] < 100


def test_a_real_training_is_seen_running_stopped_and_finished(tmp_path):
    """A process, a SIGKILL, and the same command again; then what `show` says of it."""
    spec = small("binary_subnet", arch="rn18", rewrite={"train.epochs": 400})
    toy = Plan(scale=None, tables={}, cells={}, runs={RUN: Run(name=RUN, id=RUN[-12:], spec=spec, text=text(spec))})
    out = tmp_path / paths.run_folder(RUN)

    def start(spec):
        command = [sys.executable, "-m", "methods.train", "--spec", text(spec), "--out", str(out), "--save-every", "0"]
        return subprocess.Popen(
            command, cwd=ROOT, env={**os.environ, "OMP_NUM_THREADS": "1", "SUITE_DEVICE": "cpu"}, stdout=subprocess.DEVNULL
        )

    process, deadline = start(spec), time.monotonic() + 240
    seen = None
    while seen is None or "left" not in seen.note:
        assert process.poll() is None
        assert time.monotonic() < deadline
        seen = standing.of_run(toy, RUN, tmp_path)
        time.sleep(0.05)
    assert seen.stage == "training"
    assert re.match(r"epoch \d+/400", seen.note)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert standing.of_run(toy, RUN, tmp_path).stage == "stopped"

    short = {**spec, "train": {**spec["train"], "epochs": 1}}
    (out / "state" / ".state.new.left_over").write_text("as a kill in the middle of a save leaves it")
    assert start(short).wait(timeout=240) == 0
    assert not (out / "state").exists()
    assert standing.of_run(toy, RUN, tmp_path).stage == "trained"
    told = "\n".join(made.lines(toy, RUN, tmp_path))
    for part in ("trained: 20", "seed 7", "thread(s)", "source ", "torch ", " wall, ", " of the device", "best epoch 1 of 1"):
        assert part in told
