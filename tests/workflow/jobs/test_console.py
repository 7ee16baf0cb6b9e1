"""What a person sees of a run: the line, the reports, the failures; then the real Snakemake with it."""

import io
import json
import logging
import os
import platform
import re
import signal
import subprocess
import sys
import time
from types import SimpleNamespace

import pytest
from snakemake_interface_logger_plugins.common import LogEvent

from methods.core import paths
from snakemake_logger_plugin_calm import LogHandler
from tests.cluster import tree
from tests.cluster.slurm import wait
from tests.workflow.test_snakemake import snakemake  # noqa: F401
from workflow.suite.cost import devices
from workflow.suite.jobs import console, forecast
from workflow.suite.jobs.console import Console
from workflow.suite.jobs.forecast import Forecast, Job
from workflow.suite.planning import plan

RUN = "at-cifar10-rn18-fp.0123456789ab"


class Clock:
    now = 100.0

    def __call__(self):
        return self.now


@pytest.fixture
def seen(tmp_path):
    """A console at the beginning of four jobs: data, a training of 80 s, its evaluation of 15 s, a table."""
    clock = Clock()
    seen = Console(tmp_path, clock)
    assert seen.expect(4) == "4 jobs to do"
    seen.foresee(Forecast(seconds={0: 4.0, 1: 80.0, 2: 15.0, 3: 1.0}, cells=(frozenset({2}), frozenset(), frozenset({2, 9}))))
    seen.clock = seen.tick = clock
    return seen


def train(seen, **more):
    seen.start(1, rule="train", wildcards={"run": RUN}, outputs=[paths.train_manifest(RUN)], logs=[paths.log("train", RUN)], **more)


def write(folder, name, text):
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text)


def test_the_line_tells_percent_cells_time_left_and_what_runs(seen):
    assert seen.line() == "0 % | 1 of 3 cells", "nothing is claimed of the time while nothing is known"
    seen.start(0, rule="data", wildcards={"dataset": "cifar10"}, outputs=["results/data/cifar10.sample.json"], logs=[])
    assert seen.now() == "verifying cifar10"
    seen.tick.now += 4
    assert seen.finish(0) == [], "only reports are worth a line"
    train(seen)
    # 4 of 100 s of work in 4 s; 96 are left.
    assert seen.line() == "4 % | 1 of 3 cells | about 2 min left | training at-cifar10-rn18-fp"


def test_a_training_under_way_counts_by_what_it_tells_of_itself(seen):
    train(seen)
    told = {"epochs": 4, "steps": 10, "done": 20, "begun": 0, "started": 0.0, "updated": 1.0, "pid": 1, "host": platform.node()}
    write(seen.folder, paths.progress(RUN), json.dumps(told))
    seen.tick.now += 40
    assert seen.share() == pytest.approx(0.4)
    assert seen.line() == "40 % | 1 of 3 cells | about 60 s left | training at-cifar10-rn18-fp (epoch 3/4)"


def test_an_evaluation_tells_its_examples(seen):
    log = paths.log("evaluate", RUN, "abc")
    seen.start(2, rule="evaluate", wildcards={"run": RUN, "evaluation": "abc"}, outputs=[], logs=[log])
    write(seen.folder, log, "16/64 examples, 5 of them unbroken, about 3 min left (block 1: square on 3 of 16)\n")
    assert seen.now() == "evaluating at-cifar10-rn18-fp (16/64 examples)"
    seen.start(3, rule="table", wildcards={"table": "few"}, outputs=[], logs=[])
    assert seen.now() == "evaluating at-cifar10-rn18-fp (16/64 examples) and 1 more"
    seen.finish(2)
    assert "2 of 3 cells" in seen.line(), "the third waits for another job as well"


def test_a_report_is_told_with_its_path(seen):
    outputs = [paths.table("demo", "few", kind) for kind in ("md", "tex", "csv")]
    seen.start(3, rule="table", wildcards={"table": "few"}, outputs=outputs, logs=[])
    assert seen.finish(3) == ["made reports/demo/few.md, .tex, .csv"]
    assert seen.summary("the.log") == ["Done: 1 job in 0 s. Everything Snakemake said: the.log"]


def test_a_failed_job_tells_why_in_its_own_words(seen):
    log = paths.log("train", RUN)
    train(seen)
    write(seen.folder, log, "".join(f"epoch {i}/20\n" for i in range(20)) + "error: this scale needs a GPU\n")
    first, second, *lines = seen.fail(1, rule="train", logs=[log], notes={"slurm log": "x.log"})
    assert first == "FAILED: training at-cifar10-rn18-fp: error: this scale needs a GPU"
    assert second == f"  last lines of {log}:"
    assert len(lines) == console.LAST_LINES + 1
    assert lines[-2] == "    error: this scale needs a GPU"
    assert lines[-1] == "  slurm log: x.log"
    assert "1 failed" in seen.line()
    assert seen.summary(None)[0].startswith("1 job failed after 0 s: what was finished is kept (0 jobs), and the same command goes on")


def test_one_line_is_not_said_twice(seen):
    write(seen.folder, paths.log("train", RUN), "error: no\n")
    train(seen)
    assert seen.fail(1, rule="train", logs=[paths.log("train", RUN)]) == ["FAILED: training at-cifar10-rn18-fp: error: no"]


def test_a_job_without_words_says_so(seen):
    train(seen)
    assert seen.fail(1, rule="train", logs=["no.log"])[1] == "  it left nothing in no.log"


def test_a_training_that_was_asked_to_stop_has_not_failed(seen):
    write(seen.folder, paths.log("train", RUN), "epoch 1/4\nstopped at epoch 1, step 3; run the same command again to go on\n")
    train(seen)
    told = seen.fail(1, rule="train", logs=[paths.log("train", RUN)])
    assert told == ["training at-cifar10-rn18-fp: stopped at epoch 1, step 3; run the same command again to go on"]
    assert seen.failed == set()
    seen.interrupted = True
    [last] = seen.summary(None)
    assert last.startswith("Stopped as you asked, after 0 s: trainings have saved their state, what was finished is kept")


def test_another_try_that_succeeds_is_no_failure(seen):
    train(seen)
    seen.fail(1, rule="train", logs=[])
    train(seen)
    seen.finish(1)
    assert seen.summary(None) == ["Done: 1 job in 0 s."]


def test_the_forecast_weighs_jobs_by_their_work_and_knows_the_cells(tmp_path):
    demo = plan.load("demo", data_root=tmp_path)
    device = devices.named("cpu")
    run = demo.final_runs("comparison_rn18_rn50", "rst")[0]
    result = paths.evaluation(run, demo.evaluations[run].id)
    jobs = [
        Job(number=0, rule="train", wildcards={"run": run}, outputs=(paths.model(run),), needed=True),
        Job(number=1, rule="evaluate", wildcards={"run": run}, outputs=(result,), needed=True),
        Job(number=2, rule="row", wildcards={}, outputs=("reports/demo/rows/x.md",), needed=True),
        Job(number=3, rule="data", wildcards={}, outputs=("results/data/x.json",), needed=False),
    ]
    ahead = forecast.of(demo, device, jobs)
    assert set(ahead.seconds) == {0, 1, 2}
    assert ahead.seconds[0] > ahead.seconds[1] > ahead.seconds[2] == forecast.SMALL
    users = sum(cell.runs == (run,) or list(cell.runs) == [run] for cell in demo.cells.values())
    assert ahead.cells == (frozenset({1}),) * users
    assert forecast.computes(jobs)
    assert not forecast.computes(jobs[2:])
    assert forecast.of(demo, device, [Job(**{**vars(job), "needed": False}) for job in jobs]).cells == (frozenset(),) * users


def handler(monkeypatch, **settings):
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    names = ("verbose", "printshellcmds", "debug_dag", "quiet", "stdout", "dryrun", "nocolor")
    return LogHandler(SimpleNamespace(**(dict.fromkeys(names, False) | settings)), None), stream


def say(handler, message="", level=logging.INFO, **extra):
    handler.emit(logging.makeLogRecord({"msg": message, "levelno": level, "levelname": logging.getLevelName(level), **extra}))


def test_snakemakes_chatter_is_not_passed_on(monkeypatch):
    calm, stream = handler(monkeypatch)
    say(calm, "Congratulations, your workflow is in a good condition!")
    say(calm, "Building DAG of jobs...")
    say(calm, "Workflow has started!", event=LogEvent.WORKFLOW_STARTED)
    say(calm, "Select jobs to execute...")
    say(calm, "Nothing to be done (all requested files are present and up to date).")
    say(calm, "results/x.json: is damaged", logging.WARNING)
    say(calm, "Command 'set -euo' ...: CalledProcessError in file", logging.ERROR, event=LogEvent.ERROR, exception="RuleException")
    words = 'WorkflowError in file "/a/common.smk", line 28:\nno scale is called \'huge\'; allowed: demo\n  File "/a/common.smk", line 3'
    say(calm, words, logging.ERROR, event=LogEvent.ERROR, exception="WorkflowError")
    calm.close()
    assert stream.getvalue().splitlines() == [
        "Congratulations, your workflow is in a good condition!",
        "Nothing to be done (all requested files are present and up to date).",
        "results/x.json: is damaged",
        "error: no scale is called 'huge'; allowed: demo",
    ]


@pytest.mark.parametrize("option", ["verbose", "printshellcmds", "debug_dag", "quiet"])
def test_who_asks_for_more_gets_snakemakes_own(monkeypatch, option):
    loud, stream = handler(monkeypatch, **{option: True})
    loud.setFormatter(logging.Formatter("%(message)s"))
    say(loud, "Select jobs to execute...")
    assert stream.getvalue() == "Select jobs to execute...\n"


def test_a_dry_run_is_a_table_of_counts(snakemake):  # noqa: F811
    code, output = snakemake("-n", paths.row("demo", "comparison_rn18_rn50", "rst"))
    assert code == 0
    assert output.count("Job stats:") == 1
    assert len(output.splitlines()) < 20
    _, full = snakemake("-n", "-p", paths.row("demo", "comparison_rn18_rn50", "rst"))
    assert full.count("rule train:") == 2


def test_a_failure_is_shown_with_its_reason_and_without_its_command(snakemake):  # noqa: F811
    (snakemake.folder / "none").mkdir()
    code, output = snakemake(paths.data_manifest("imagenet100", "full"), "--config", f"data_root={snakemake.folder / 'none'}")
    assert code == 1
    assert re.search(r"^FAILED: verifying imagenet100: error: .*none", output, re.MULTILINE), output
    assert "1 job failed" in output
    assert "CalledProcessError" not in output
    assert len(output) < 3000
    [log] = (snakemake.folder / ".snakemake/log").glob("*.log")
    assert "CalledProcessError" in log.read_text(), "the log keeps everything"


def test_a_scale_that_needs_a_gpu_is_refused_before_anything_runs(snakemake):  # noqa: F811
    target = paths.row("paper", "comparison_rn18_rn50", "rst")
    code, output = snakemake(target, "--config", "scale=paper", "data_root=none")
    assert code == 1
    assert "error: this scale needs a GPU and torch sees none" in output
    assert not (snakemake.folder / "logs").exists()
    code, output = snakemake(paths.paper_audit(), "--config", "scale=paper", "data_root=none")
    assert code == 0, f"what computes nothing needs no GPU: {output}"


def test_a_wrong_variable_is_refused_before_anything_runs(snakemake, monkeypatch):  # noqa: F811
    monkeypatch.setenv("SUITE_DEVICE", "gpu")
    code, output = snakemake(paths.row("demo", "comparison_rn18_rn50", "rst"))
    assert code == 1
    assert "error: SUITE_DEVICE=gpu: allowed: auto, cpu, cuda" in output
    assert not (snakemake.folder / "logs").exists()


@pytest.mark.timeout(1200)
def test_ctrl_c_saves_states_and_ends_with_one_sentence(tmp_path):
    checkout = tree.copy(tmp_path / "suite", epochs=200)
    target = paths.row("tiny", "few", "rst")

    def start():
        command = [sys.executable, "-m", "snakemake", "--cores", "2", target, *tree.SETTINGS]
        environ = {**os.environ, "OMP_NUM_THREADS": "1"}
        return subprocess.Popen(
            command, cwd=checkout, env=environ, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
        )

    process = start()
    wait(lambda: list(checkout.glob("results/runs/*/state/progress.json")), "a training under way", seconds=500)
    time.sleep(1)
    os.killpg(process.pid, signal.SIGINT)
    output, _ = process.communicate(timeout=500)
    assert process.returncode == 1
    assert "Stopped as you asked" in output.splitlines()[-1]
    assert "Traceback" not in output
    assert "rror" not in output
    [state] = checkout.glob("results/runs/*/state/state.new")
    log = checkout / paths.log("train", state.parent.parent.name)
    assert "stopped at epoch" in log.read_text()
    process = start()
    wait(lambda: "resumed at epoch" in log.read_text(), "the training going on", seconds=500)
    os.killpg(process.pid, signal.SIGINT)
    process.communicate(timeout=500)
