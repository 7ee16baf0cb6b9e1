"""Figures, the page and Snakemake's own report, as Snakemake makes them."""

import re
import zipfile

import pytest
from PIL import Image

from methods.core import paths
from tests.workflow import finished
from tests.workflow.dry_run import jobs
from workflow.suite.figures import catalogue, needs
from workflow.suite.page.details import evaluation_logs
from workflow.suite.planning import plan


@pytest.fixture
def done(snakemake):
    """The one Run of the mask figures is finished, and its data known."""
    demo = plan.load("demo", data_root=snakemake.folder / "none")
    run = needs.subject(demo)
    manifest = snakemake.folder / paths.data_manifest(*plan.manifest_key(demo.runs[run]))
    manifest.parent.mkdir(parents=True)
    manifest.write_text("{}")
    finished.train(demo, run, snakemake.folder)
    return demo


def test_a_figure_asks_for_its_own_runs_only(snakemake):
    code, output = snakemake("-n", paths.figure("demo", "mask_dist", "png"), paths.figure("demo", "mask_full", "pdf"))
    assert code == 0, output
    assert jobs(output) == {"data": 1, "train": 1, "figure": 2, "total": 4}


def test_everything_includes_figures_and_page(snakemake):
    code, output = snakemake("-n", "--config", "data_root=none")
    assert code == 0, output
    assert jobs(output)["figure"] == len(catalogue.FIGURES) - 1, "nobody has asked for a security curve"
    assert jobs(output)["page"] == 1


def test_wrong_figures_are_refused(snakemake):
    code, output = snakemake("-n", "reports/demo/nothing.png")
    assert code != 0 and "no figure is called 'nothing'; allowed: mask_dist, kernel_histogram" in output
    code, output = snakemake("-n", "reports/paper/mask_dist.png")
    assert code != 0 and "add --config scale=paper" in output


def test_a_figure_is_drawn_and_reported_with_its_caption(snakemake, done):
    target = paths.figure("demo", "kernel_histogram", "png")
    code, output = snakemake(target)
    assert code == 0, output
    assert f"made {target}, .pdf" in output
    with Image.open(snakemake.folder / target) as image:
        assert image.text["Title"] == "Kept weights per kernel"
    code, output = snakemake(target, "--report", "reports/demo/report.zip")
    assert code == 0, output
    with zipfile.ZipFile(snakemake.folder / "reports" / "demo" / "report.zip") as content:
        names = content.namelist()
        text = content.read("report/report.html").decode()
    assert any(name.endswith("/kernel_histogram.png") for name in names)
    about = catalogue.FIGURES["kernel_histogram"]
    assert about.about in text and about.paper in text and "scale <strong>demo</strong>" in text


@pytest.mark.parametrize("scale", ["demo", "paper"])
def test_the_page_names_the_logs_that_jobs_write(snakemake, scale):
    planned = plan.load(scale, data_root=snakemake.folder / "none")
    run = needs.subject(planned)
    target = paths.evaluation(run, planned.evaluations[run].id)
    code, output = snakemake("-n", "-p", target, "--config", f"scale={scale}", "data_root=none")
    assert code == 0, output
    written = set(re.findall(r"log: (\S+)", output))
    assert {paths.log("train", run), *evaluation_logs(planned, run)} <= written
