"""The workflow as Snakemake sees it: which jobs for which target, clear refusals, clean style."""

import subprocess
import sys

import pytest

from methods.core import paths
from tests.workflow.dry_run import jobs
from workflow.suite.planning import plan
from workflow.suite.planning.config import ROOT

SNAKEFILE = ROOT / "Snakefile"


@pytest.mark.parametrize("scale", ["demo", "paper"])
def test_all_tables_lists_every_planned_job(snakemake, scale):
    code, output = snakemake("-n", "all_tables", "--config", f"scale={scale}", "data_root=none")
    planned = plan.load(scale, data_root=snakemake.folder / "none")
    shards = sum(evaluation.shards for evaluation in planned.evaluations.values())
    sources = {plan.manifest_key(run) for run in planned.runs.values()}
    merges = len(planned.evaluations)
    assert code == 0
    assert {key: count for key, count in jobs(output).items() if key != "total"} == {
        "data": len(sources),
        "train": len(planned.runs),
        "evaluate": shards,
        **({"merge": merges} if shards > merges else {}),  # one job evaluates and merges where nothing is cut
        "frame": 1,
        "table": len(planned.tables),
        "complexity": 1,
        "smallnet": 1,
        "all_tables": 1,
    }


def test_all_also_holds_results_against_the_paper(snakemake):
    code, output = snakemake("-n", "all", "--config", "data_root=none")
    assert "Error" not in output, "a rule was tried for a file of another"
    assert code == 0
    assert {key: jobs(output).get(key) for key in ("diff", "claims", "paper_audit")} == dict.fromkeys(("diff", "claims", "paper_audit"), 1)


def test_what_needs_no_run_is_made_at_once(snakemake):
    targets = [paths.paper_audit(), *(paths.table("demo", name, "md") for name in paths.CLOSED)]
    code, output = snakemake(*targets)
    assert code == 0, output
    texts = [(snakemake.folder / target).read_text() for target in targets]
    assert "One cell, two numbers (2)" in texts[0]
    assert "0.6616" in texts[1]
    assert "201078" in texts[2]
    assert not (snakemake.folder / "results").exists()
    assert "Nothing to be done" in snakemake(*targets)[1]


def test_one_row_asks_for_its_own_runs_only(snakemake):
    code, output = snakemake("-n", "-p", paths.row("demo", "main_comparison", "hydra"))
    planned = plan.load("demo", data_root=snakemake.folder / "data")
    final = planned.final_runs("main_comparison", "hydra")
    chain = {run.name for name in final for run in planned.lineage(name)}
    assert code == 0
    assert jobs(output)["train"] == len(chain) > len(final)
    assert jobs(output)["evaluate"] == len(final) == 6
    child, parent = planned.lineage(final[0])[:2]
    job = output[output.index(f"output: {paths.train_manifest(child.name)}") - 400 :]
    assert paths.train_manifest(parent.name) in job[: job.index("jobid")], "a phase waits for the phase it starts from"
    assert f"--spec '{child.text}'" in snakemake("-n", "-p", paths.train_manifest(child.name))[1]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["all_tables", "--config", "scale=huge"], "workflow/config/scales: no scale is called 'huge'; allowed: demo, lite, paper"),
        (["all_tables", "--config", "colour=red"], "workflow/config/suite.yaml: unknown key 'colour'; allowed: allow_cpu"),
        (["reports/demo/foo.md"], "workflow/config/tables: no table is called 'foo'; allowed: sp_ratio, bn_ablation"),
        (["reports/demo/rows/vanilla.foo.md"], "workflow/config/tables/vanilla.yaml: no row is called 'foo'; allowed: at"),
        (["reports/paper/vanilla.md"], "add --config scale=paper (allowed: demo, lite, paper, paper_bf16)"),
        (["all_table"], "no rule and no file to make is called 'all_table'; did you mean 'all_tables'?"),
        (["reports/dmo/index.html"], "'reports/dmo/index.html': no scale is called 'dmo'; did you mean 'reports/demo/index.html'?"),
        (["reports/dmo/vanilla.md"], "'reports/dmo/vanilla.md': no scale is called 'dmo'; did you mean 'reports/demo/vanilla.md'?"),
        (["all_tables", "--config", "gpu=a1000"], "workflow/config/devices.yaml: no device is called 'a1000'; did you mean 'a100'?"),
        (
            ["results/data/cifar10.full.json", "--config", "data_root=imgaes"],
            "data_root: 'imgaes' is not there; if data sets are to be fetched into it: mkdir -p imgaes",
        ),
        (["results/runs/at.0123456789ab/train.json"], "no Run is called 'at.0123456789ab' at scale 'demo'"),
    ],
)
def test_wrong_input_is_a_clear_message(snakemake, words, message):
    code, output = snakemake(*words)
    assert code != 0
    assert message in output
    assert "Traceback (most recent call last)" not in output
    assert not (snakemake.folder / "results").exists()
    assert not (snakemake.folder / "reports").exists()


def test_lint_and_format_are_clean():
    lint = subprocess.run([sys.executable, "-m", "snakemake", "--lint"], cwd=ROOT, capture_output=True, text=True)
    assert lint.returncode == 0, lint.stderr
    files = [SNAKEFILE, ROOT / "workflow" / "Snakefile", *(ROOT / "workflow" / "rules").glob("*.smk")]
    style = subprocess.run([sys.executable, "-m", "snakefmt", "--check", *map(str, files)], capture_output=True, text=True)
    assert style.returncode == 0, style.stderr


def test_a_row_from_nothing_and_a_second_run_that_does_nothing(snakemake):
    """Really trains, evaluates and renders: one small network on the shipped sample."""
    target = paths.row("demo", "comparison_rn18_rn50", "rst")
    code, output = snakemake(target, "--config", "data_root=none")
    assert code == 0, output
    text = (snakemake.folder / target).read_text()
    planned = plan.load("demo", data_root=snakemake.folder / "none")
    for run in planned.final_runs("comparison_rn18_rn50", "rst"):
        assert run in text
        assert (snakemake.folder / paths.model(run)).stat().st_size > 1000
    assert text.count("| done ") == 2
    assert "NOT comparable" in text
    assert "CIFAR-10 sample" in text
    code, output = snakemake(target, "--config", "data_root=elsewhere")
    assert code == 0
    assert "Nothing to be done" in output, "where the data lies is no part of a result"


def test_seeds_on_the_command_line_multiply_the_trainings(snakemake):
    words = ("-n", paths.table("demo", "bn_ablation", "md"), "--config", "data_root=none")
    once, twice = (jobs(snakemake(*words, *seeds)[1])["train"] for seeds in ((), ("seeds=[1,2]",)))
    assert (once, twice) == (8, 16)
    code, output = snakemake(*words, "seeds=[1,1]")
    assert code != 0
    assert "suite.yaml: seeds: [1, 1] is not allowed; allowed: a list of seeds such as [1, 2, 3], each once" in output


def test_a_security_curve_is_made_for_the_run_that_is_named(snakemake):
    demo = plan.load("demo", data_root=snakemake.folder / "none")
    (run,) = demo.cells["main_comparison.at.cifar10-fp"].runs
    code, output = snakemake("-n", *(paths.security_curve(run, norm) for norm in ("Linf", "L2")), "--config", "data_root=none")
    assert code == 0, output
    assert jobs(output) == {"data": 1, "train": 1, "security_curve": 2, "total": 4}
