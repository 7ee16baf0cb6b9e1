"""`suite report`: everything of a scale that can be rendered from what is finished, in one command."""

from methods.core import paths
from tests.workflow import finished
from workflow.suite.__main__ import main
from workflow.suite.planning import plan
from workflow.suite.planning.config import ROOT


def test_report_renders_tables_figures_sheets_and_the_page(tmp_path, capsys):
    lite = plan.load("lite", data_root=ROOT / "none")
    finished.finish(lite, [lite.cells["main_comparison.ours.cifar10-binary"].runs[0]], tmp_path)
    assert main(["report", "--scale", "lite", "--directory", str(tmp_path)]) == 0
    written = capsys.readouterr().out.splitlines()
    assert written[-1].endswith("reports/lite/index.html")
    for table in lite.tables:
        assert (tmp_path / paths.table("lite", table, "md")).is_file(), table
    for name in ("ratio_map", "size_accuracy", "mask_dist"):
        assert (tmp_path / paths.figure("lite", name, "png")).is_file(), name
    assert (tmp_path / paths.claims("lite", "md")).is_file()
    assert (tmp_path / paths.frame("lite", "csv")).is_file()
    assert (tmp_path / paths.paper_audit()).is_file()
    assert 'href="../paper_audit.md"' in (tmp_path / paths.page("lite")).read_text()
