"""The page of fabricated results: as text, and open in a browser."""

import pytest

from methods.core import paths
from tests.workflow import finished
from tests.workflow.page.browser import Browser
from workflow.suite.figures import catalogue
from workflow.suite.page import render
from workflow.suite.paper import checks
from workflow.suite.planning import plan
from workflow.suite.planning.config import ROOT

OURS = "main_comparison.ours.cifar10-binary"


@pytest.fixture(scope="session")
def demo():
    return plan.load("demo", data_root=ROOT / "none")


@pytest.fixture(scope="session")
def folder(demo, tmp_path_factory):
    """Finished: the CIFAR-10 columns of the main comparison; with the comparison to the paper, the claims, the audit, and one figure."""
    cells = [cell for cell in demo.cells_of("main_comparison") if cell.column.startswith("cifar10")]
    place = finished.finish(demo, [run for cell in cells for run in cell.runs], tmp_path_factory.mktemp("page"))
    checks.write_diff(demo, place)
    checks.write_claims(demo, place)
    checks.write_audit(demo, place)
    catalogue.write(demo, "kernel_histogram", place)
    log = place / paths.log("train", demo.cells[OURS].runs[0])
    log.parent.mkdir(parents=True)
    log.write_text("epoch 1")
    render.write(demo, place)
    return place


@pytest.fixture(scope="session")
def text(demo, folder):
    return (folder / paths.page(demo.scale.name)).read_text()


@pytest.fixture(scope="session")
def session(tmp_path_factory):
    with Browser(tmp_path_factory.mktemp("profile")) as browser:
        yield browser


@pytest.fixture
def browser(session, folder):
    session.prefer("light")
    session.resize(1280, 900)
    session.open(folder / paths.page("demo"))
    return session
