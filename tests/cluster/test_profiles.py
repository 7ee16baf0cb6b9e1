"""Profiles as Snakemake reads them."""

import os
import re
import subprocess
import sys

import pytest
from snakemake.profiles import ProfileConfigFileParser
from snakemake_interface_logger_plugins.registry import LoggerPluginRegistry

from methods.core import paths
from workflow.suite.planning.config import ROOT

PROFILES = ROOT / "workflow" / "profiles"


def read(path):
    with path.open() as stream:
        return ProfileConfigFileParser().parse(stream)


def test_slurm_leaves_to_the_cluster_what_is_not_filled_in():
    profile = read(PROFILES / "slurm/profile.yaml")
    assert {item.split("=")[0] for item in profile["default-resources"]} == {"mem_mb", "runtime"}
    assert "set-resources" not in profile
    assert int(profile["retries"]) > 0
    assert profile["slurm-status-command"] == "squeue"


@pytest.mark.parametrize("name", ["default", "slurm", "local-gpu"])
@pytest.mark.parametrize("installed", [True, False])
def test_the_console_is_calm_where_the_plugin_is_there(monkeypatch, name, installed):
    monkeypatch.setattr(LoggerPluginRegistry, "is_installed", lambda registry, plugin: installed and plugin == "calm")
    assert read(PROFILES / name / "profile.yaml").get("logger") == ("calm" if installed else None)


def test_partition_account_and_gpu_type_stand_in_one_place(tmp_path):
    text = (PROFILES / "slurm/profile.yaml").read_text()
    for key, value in {"partition": "gpu", "account": "vision", "gpu_type": "a100"}.items():
        text, count = re.subn(rf"^  {key}: null", f"  {key}: {value}", text, flags=re.MULTILINE)
        assert count == 1
    (tmp_path / "profile.yaml").write_text(text)
    profile = read(tmp_path / "profile.yaml")
    assert {"slurm_partition=gpu", "slurm_account=vision"} < set(profile["default-resources"])
    assert profile["set-resources"] == ["train:gpu_model=a100", "evaluate:gpu_model=a100"]


@pytest.mark.parametrize(("chosen", "listed", "count"), [("4,6", 8, 2), ("", 8, 1), (None, 3, 3), (None, None, 1)])
def test_local_jobs_are_as_many_as_gpus(tmp_path, monkeypatch, chosen, listed, count):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if chosen is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", chosen)
    monkeypatch.setenv("PATH", str(tmp_path))
    if listed is not None:
        tool = tmp_path / "nvidia-smi"
        lines = "\n".join(f"echo 'GPU {i}: Some card (UUID: GPU-{i})'" for i in range(listed))
        tool.write_text(f"#!/bin/sh\n{lines}\n")
        tool.chmod(0o755)
    assert read(PROFILES / "local-gpu/profile.yaml")["resources"] == [f"gpu={count}"]


def test_snakemake_counts_gpus_by_the_profile(tmp_path):
    words = [paths.paper_audit(), "-p", "--directory", str(tmp_path), "--workflow-profile", "workflow/profiles/local-gpu"]
    environ = {**os.environ, "CUDA_VISIBLE_DEVICES": "0,1,2"}
    done = subprocess.run([sys.executable, "-m", "snakemake", *words], cwd=ROOT, capture_output=True, text=True, env=environ)
    assert done.returncode == 0, done.stderr
    assert re.search(r"Provided resources: gpu=.*\b3\b", done.stderr), done.stderr
