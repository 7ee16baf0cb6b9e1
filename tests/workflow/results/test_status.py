"""`status` of what is finished: a line for a table, a sentence for a scale."""

from pathlib import Path

import pytest

from methods.core import paths
from tests.workflow.results.recorded import CURRENT, record_code
from workflow.suite.planning import plan
from workflow.suite.results.status_text import of_plan

# Another table of the small repository: one cell.
OTHER = """
title: Another table
label: tbl:other
caption: Other.
metric: robust_acc
stub: [Method]
columns:
  - {id: fp, head: [CIFAR10, FP], run: {dataset: cifar10, precision: fp, arch: rn50}, best: underline}
rows:
  - {id: ref, labels: [Reference], section: reference, run: {method: hydra, p: 0.1}, cells: [50.00]}
"""


@pytest.fixture
def two_tables(repository):  # noqa: F811
    (repository / "workflow" / "config" / "tables" / "another.yaml").write_text(OTHER)
    return plan.load("demo", data_root=Path("none"), root=repository)


@pytest.fixture
def done(two_tables, finish):
    """done(table, ...) finishes tables with the code that lies here; returns what status then says."""

    def make(*tables):
        for run in (run for table in tables for run in two_tables.final_runs(table)):
            finish(two_tables, run, n_clean=40, n_robust=20)
            record_code(finish.folder, two_tables, run, CURRENT)
        return of_plan(two_tables, finish.folder)

    return make


def test_a_finished_table_is_one_line(done):
    text = done("another").splitlines()
    report = paths.table("demo", "another", "md")
    assert [line for line in text if line.startswith("another")] == [
        f"another: all 1 cells done, `snakemake --cores 1 {report} --config scale=demo` renders it"
    ]
    assert next(line for line in text if line.startswith("all ")).split()[1] == "1", "the last line counts finished tables too"
    assert [line.split()[0] for line in text if line.startswith("small")] == ["small"]


def test_a_finished_table_that_is_rendered_says_where(done, finish):
    report = finish.folder / paths.table("demo", "another", "md")
    report.parent.mkdir(parents=True)
    report.write_text("")
    assert f"another: all 1 cells done, {paths.table('demo', 'another', 'md')}" in done("another").splitlines()


def test_a_finished_scale_is_one_sentence(done):
    sentence, reason = done("another", "small").splitlines()
    page = paths.page("demo")
    assert sentence == (
        f"Scale demo is finished: all 6 cells of 2 tables are measured; `snakemake --cores 1 --config scale=demo` writes {page}."
    )
    assert reason.startswith("not available, 2 cells: method 'trades' is not implemented yet")


def test_a_finished_scale_with_its_page_names_it(done, finish):
    page = finish.folder / paths.page("demo")
    page.parent.mkdir(parents=True)
    page.write_text("")
    assert done("another", "small").startswith(
        "Scale demo is finished: all 6 cells of 2 tables are measured; reports/demo/index.html has everything."
    )


def test_a_stale_table_is_not_finished(done, two_tables, finish):
    done("another")
    record_code(finish.folder, two_tables, two_tables.final_runs("another")[0], {"methods/gone.py": "0"})
    assert "all 1 cells done" not in of_plan(two_tables, finish.folder)


def test_nothing_measured_is_not_finished(two_tables, tmp_path):
    assert "finished" not in of_plan(two_tables, tmp_path / "empty")
