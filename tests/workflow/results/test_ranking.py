"""Ranks over settings: the example of Demšar 2006 (JMLR 7, table 6), and which settings and methods the comparisons give."""

from pathlib import Path

import pytest
from scipy.stats import chi2

from tests.workflow import finished
from workflow.suite.planning import plan
from workflow.suite.results import ranking, settings
from workflow.suite.results.measure import measure

# AUC of C4.5 with and without cut-offs on m and cf, on 14 data sets. The last two of `voting` are printed as equal and ranked 2 and 3.
DEMSAR = {
    "C4.5": [0.763, 0.599, 0.954, 0.628, 0.882, 0.936, 0.661, 0.583, 0.775, 1.000, 0.940, 0.619, 0.972, 0.957],
    "C4.5+m": [0.768, 0.591, 0.971, 0.661, 0.888, 0.931, 0.668, 0.583, 0.838, 1.000, 0.962, 0.666, 0.981, 0.978],
    "C4.5+cf": [0.771, 0.590, 0.968, 0.654, 0.886, 0.916, 0.609, 0.563, 0.866, 1.000, 0.965, 0.614, 0.9751, 0.946],
    "C4.5+m+cf": [0.798, 0.569, 0.967, 0.657, 0.898, 0.931, 0.685, 0.625, 0.875, 1.000, 0.962, 0.669, 0.9750, 0.970],
}


def test_the_example_of_demsar():
    """Mean ranks 3.143, 2.000, 2.893, 1.964 and chi2 = 9.28 as printed; ties (three pairs, one of four) divide that by 1 - 78 / 840."""
    result = ranking.rank(DEMSAR)
    assert result.names == ("C4.5+m+cf", "C4.5+m", "C4.5+cf", "C4.5")
    assert result.ranks == pytest.approx((1.964, 2.000, 2.893, 3.143), abs=5e-4)
    assert result.p == pytest.approx(chi2.sf(9.28 / (1 - 78 / 840), 3), rel=0.01)
    assert result.critical == pytest.approx(1.25, abs=5e-3)
    assert result.groups == [(0, 3)]  # 3.143 - 1.964 is below 1.25: not told apart at 5 %, as printed
    assert ranking.critical_difference(4, 14, level=0.1) == pytest.approx(1.12, abs=5e-3)


@pytest.fixture(scope="module")
def demo():
    return plan.load("demo", data_root=Path("none"))


def test_settings_of_the_paper(demo):
    binary, fp = settings.of_paper(demo, "binary"), settings.of_paper(demo, "fp")
    assert len(binary.names) == 5
    assert binary.values["AT-LBN"] == [39.58, 32.98, 35.36, 39.86, 37.25]
    assert binary.values["Ours-LBN, p = 0.1"] == [45.06, 34.83, 33.04, 39.65, 42.72], "on ImageNet-100 one number is printed for both"
    assert "BCS" not in binary.values, "the paper prints dashes"
    assert "BCS" not in fp.values
    assert fp.values["HYDRA, p = 0.1"] == [42.73, 33.00, 43.18, 40.20, 44.14]
    assert {len(values) for values in (*binary.values.values(), *fp.values.values())} == {5}


def test_settings_of_results_hold_what_is_complete(demo, tmp_path):
    for name in ("at", "flyingbird", "hydra"):
        for cell in demo.cells_of("comparison_rn18_rn50", name):
            for run in cell.runs:
                finished.evaluate(demo, run, tmp_path)
    (run,) = demo.cells["comparison_rn18_rn50.bcs.rn18-fp"].runs
    finished.evaluate(demo, run, tmp_path)
    measured = settings.of_results(demo, "fp", tmp_path)
    assert measured.names == ("comparison_rn18_rn50.rn18-fp", "comparison_rn18_rn50.rn50-fp")
    assert set(measured.values) == {"AT", "FlyingBird", "HYDRA, p = 0.1"}
    cell = demo.cells["comparison_rn18_rn50.at.rn50-fp"]
    assert measured.values["AT"][1] == measure(demo, cell, tmp_path).value
    assert ranking.rank(measured.values) is None
