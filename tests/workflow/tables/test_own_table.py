"""A table of one's own: any heads, no numbers of the paper, and every report shows it."""

import textwrap

import pytest

from methods.core import paths
from methods.core.errors import UserError
from tests.workflow import finished
from workflow.suite.page import render as page
from workflow.suite.paper import checks
from workflow.suite.paper.claims import catalogue, evidence
from workflow.suite.planning import config, plan
from workflow.suite.planning.config import ROOT
from workflow.suite.planning.tables import load_table, load_tables
from workflow.suite.results import compare
from workflow.suite.results.show import show
from workflow.suite.tables import render

ROWS = """
title: My comparison
metric: robust_acc
stub: {stub}
run: {{dataset: cifar10}}
columns:
  - {{id: fp, head: [Full], run: {{precision: fp}}}}
rows:
  - {{id: net-a, labels: {labels}, run: {{method: at, arch: rn18}}}}
  - {{id: net-b, labels: {labels}, run: {{method: trades, arch: rn18, lbn: true}}}}
"""
STUBS = {"[Method]": "[AT]", "[Method, Architecture]": "[AT, RN18]", "[Approach, Net]": "[AT, RN18]", "[A, B, C, D]": "[a, b, c, d]"}


def load(folder, text, name="mine"):
    path = folder / "tables" / f"{name}.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(textwrap.dedent(text))
    return load_table(name, folder)


def planned(table, scale="demo"):
    return plan.build({**load_tables(), table.name: table}, plan.recipes.load_all(ROOT), config.load_scale(scale), data_root=ROOT)


@pytest.mark.parametrize("stub", STUBS)
def test_every_report_shows_it(tmp_path, stub):
    demo = planned(load(tmp_path / "config", ROWS.format(stub=stub, labels=STUBS[stub])))
    folder = finished.finish(demo, list(demo.cells["mine.net-a.fp"].runs), tmp_path)
    written = [*render.write_table(demo, "mine", folder), *render.write_row(demo, "mine", "net-a", folder)]
    written += [*checks.write_diff(demo, folder), *checks.write_claims(demo, folder), *checks.write_audit(demo, folder)]
    for name in paths.CLOSED:
        written += checks.write_closed(demo, name, folder)
    written.append(page.write(demo, folder))
    assert all(path.is_file() for path in written)
    text = written[0].read_text()
    assert "My comparison" in text
    assert " / " not in text.split("\n\n")[3], "there is no number of the paper to show"
    assert 'id="mine"' in written[-1].read_text()
    assert "paper" not in show(demo, "mine.net-a.fp", folder).splitlines()[0]
    item = next(item for item in compare.compare(demo, folder) if item.address == "mine.net-a.fp")
    assert (item.verdict, item.why) == ("not comparable", "the paper prints no number")


def test_it_is_no_part_of_the_papers_claims(tmp_path):
    rows = ROWS.format(stub="[Approach, Net]", labels="[Ours, RN34]").replace("method: trades", "method: binary_subnet")
    rows = rows.replace("dataset: cifar10", "dataset: imagenet100").replace("arch: rn18, lbn: true", "p: 1.0").replace("fp}", "binary}")
    demo = planned(load(tmp_path, rows))
    mine = evidence.of_results(demo, tmp_path)
    assert "mine" not in set(mine.cells["table"])
    assert catalogue.judge(evidence.of_paper(demo.tables)) == catalogue.judge(evidence.of_paper())


def test_claims_about_a_table_that_was_taken_away_have_no_verdict(tmp_path):
    tables = {name: table for name, table in load_tables().items() if name != "sp_ratio"}
    verdicts = catalogue.judge(evidence.of_paper(tables))
    assert {verdicts[id].verdict for id in ("C01", "C05", "C13")} == {"NOT-IN-TABLES"}
    assert verdicts["C01"].numbers == "there is no table sp_ratio"


def test_a_table_needs_few_keys_and_all_that_are_missing_are_named_at_once(tmp_path):
    table = load(tmp_path, ROWS.format(stub="[Net]", labels="[x]"))
    assert (table.label, table.caption) == ("tbl:mine", "My comparison")
    assert {column.best for column in table.columns} == {"bold"}
    with pytest.raises(UserError) as error:
        load(tmp_path, "title: Mine\ncolumns: [{head: [a]}]\nrows: [{id: x}, {labels: [y]}]")
    for words in (
        "missing key 'metric', 'stub'",
        "columns[0]: missing key 'id'",
        "rows[0]: missing key 'labels'",
        "rows[1]: missing key 'id'",
    ):
        assert words in str(error.value)


@pytest.mark.parametrize("part", ["rows", "columns"])
def test_an_id_that_cannot_be_part_of_a_file_name(tmp_path, part):
    old, new = {"rows": ("net-a", "net_a"), "columns": ("id: fp", "id: f_p")}[part]
    with pytest.raises(UserError) as error:
        load(tmp_path, ROWS.format(stub="[Net]", labels="[x]").replace(old, new))
    assert f"{part}[0].id: '{new.removeprefix('id: ')}' is not allowed; allowed: small letters, digits and -, such as at-lbn" in str(
        error.value
    )
