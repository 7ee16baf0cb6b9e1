"""What passes from Snakemake to a person: the logger by itself, then with the real Snakemake."""

import io
import logging
import os
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


@pytest.mark.parametrize(
    "words", ["Terminating processes on user request, this might take some time.", "Cancelling snakemake on user request."]
)
def test_an_interruption_is_known_by_either_of_snakemakes_words(monkeypatch, words):
    """The first while it waits for jobs, the second at any other moment."""
    calm, stream = handler(monkeypatch)
    say(calm, "Workflow has started!", event=LogEvent.WORKFLOW_STARTED)
    say(calm, words, logging.ERROR, event=LogEvent.ERROR)
    calm.close()
    assert "stopping; trainings save their state" in stream.getvalue()
    assert stream.getvalue().splitlines()[-1].startswith("Stopped as you asked")


@pytest.mark.parametrize("option", ["verbose", "printshellcmds", "debug_dag", "quiet"])
def test_who_asks_for_more_gets_snakemakes_own(monkeypatch, option):
    loud, stream = handler(monkeypatch, **{option: True})
    loud.setFormatter(logging.Formatter("%(message)s"))
    say(loud, "Select jobs to execute...")
    assert stream.getvalue() == "Select jobs to execute...\n"


def test_a_dry_run_is_a_table_of_counts(snakemake):
    code, output = snakemake("-n", paths.row("demo", "comparison_rn18_rn50", "rst"))
    assert code == 0
    assert output.count("Job stats:") == 1
    assert len(output.splitlines()) < 20
    _, full = snakemake("-n", "-p", paths.row("demo", "comparison_rn18_rn50", "rst"))
    assert full.count("rule train:") == 2


def test_a_failure_is_shown_with_its_reason_and_without_its_command(snakemake):
    (snakemake.folder / "none").mkdir()
    code, output = snakemake(paths.data_manifest("imagenet100", "full"), "--config", f"data_root={snakemake.folder / 'none'}")
    assert code == 1
    assert re.search(r"^FAILED: verifying imagenet100: error: .*none", output, re.MULTILINE), output
    assert "1 job failed" in output
    assert "CalledProcessError" not in output
    assert len(output) < 3000
    [log] = (snakemake.folder / ".snakemake/log").glob("*.log")
    assert "CalledProcessError" in log.read_text(), "the log keeps everything"


def test_a_scale_that_needs_a_gpu_is_refused_before_anything_runs(snakemake):
    target = paths.row("paper", "comparison_rn18_rn50", "rst")
    code, output = snakemake(target, "--config", "scale=paper", "data_root=none")
    assert code == 1
    assert "error: this scale needs a GPU and torch sees none" in output
    assert not (snakemake.folder / "logs").exists()
    code, output = snakemake(paths.paper_audit(), "--config", "scale=paper", "data_root=none")
    assert code == 0, f"what computes nothing needs no GPU: {output}"


def test_a_wrong_variable_is_refused_before_anything_runs(snakemake, monkeypatch):
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
