"""What is said of results that are not what was written."""

import pytest

from methods.core import paths, sealed
from tests.workflow import finished
from workflow.suite.jobs import damage
from workflow.suite.planning import plan
from workflow.suite.planning.config import ROOT


@pytest.fixture(scope="module")
def demo():
    return plan.load("demo", data_root=ROOT / "none")


def carry(demo, folder, number):
    """Finished first phases, as a clone has them."""
    first = list(dict.fromkeys(run.parent for run in demo.runs.values() if run.parent and demo.runs[run.parent].parent is None))
    for run in first[:number]:
        finished.train(demo, run, folder)
        manifest = {key: value for key, value in sealed.read(folder / paths.train_manifest(run)).items() if key != "sha256"}
        sealed.write(folder / paths.train_manifest(run), manifest | {"handover_sha256": "0" * 64})
    return first[:number]


def said(demo, folder):
    return list(damage.told(error for _, error in damage.find(demo, folder)))


def test_the_phases_of_a_clone_are_one_line(demo, tmp_path):
    runs = carry(demo, tmp_path, 3)
    assert [name for name, _ in damage.find(demo, tmp_path)] == [paths.train_manifest(run) for run in runs]
    assert said(demo, tmp_path) == [
        "3 phases came without what they hand over (clones do); they are trained again where a Run to be made needs them"
    ]


def test_a_single_phase_is_named(demo, tmp_path):
    [run] = carry(demo, tmp_path, 1)
    [line] = said(demo, tmp_path)
    assert line.startswith(f"{tmp_path / paths.handover(run)}: is not there (clones lack it)")


def test_what_is_damaged_has_a_line_of_its_own(demo, tmp_path):
    runs = carry(demo, tmp_path, 3)
    (tmp_path / paths.history(runs[1])).write_text("{}\n")
    first, second = said(demo, tmp_path)
    assert first.startswith(f"{tmp_path / paths.history(runs[1])}: is damaged")
    assert second.startswith("2 phases came without")
