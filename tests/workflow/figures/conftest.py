"""A plan of scale demo and finished Runs of it, for every test of figures; a test that changes files copies them first."""

import pytest

from tests.workflow import finished
from workflow.suite.figures import needs
from workflow.suite.planning import plan
from workflow.suite.planning.config import ROOT


@pytest.fixture(scope="session")
def demo():
    return plan.load("demo", data_root=ROOT / "none")


@pytest.fixture(scope="session")
def folder(demo, tmp_path_factory):
    """Finished: the network of the mask figures, the eight of the curves, and the small comparison of RN18 and RN50."""
    runs = [needs.subject(demo), *(run for group in needs.curve_runs(demo).values() for run in group)]
    folder = finished.finish(demo, [*dict.fromkeys([*runs, *demo.final_runs("comparison_rn18_rn50")])], tmp_path_factory.mktemp("done"))
    finished.repeat_first_epoch(demo, needs.subject(demo), folder)
    return folder
