"""What a person sees of a run: the line, the reports, the failures."""

import json
import platform

import pytest

from methods.core import paths
from workflow.suite.jobs import console
from workflow.suite.jobs.console import Console
from workflow.suite.jobs.forecast import Forecast

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
