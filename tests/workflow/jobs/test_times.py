"""Time stamps of results that did not come from a job."""

import os

import pytest

from methods.core import paths, sealed
from workflow.suite.jobs import times
from workflow.suite.planning import plan


@pytest.fixture
def planned(repository, tmp_path):
    return plan.load("demo", data_root=tmp_path / "data", root=repository)


@pytest.fixture
def results(planned, tmp_path):
    """A phased Run with its parents, trained one after the other and evaluated, with stamps in the opposite order."""
    run = next(run for run in planned.final_runs() if planned.runs[run].parent)
    chain = [item.name for item in reversed(planned.lineage(run))]
    chosen, names = planned.evaluations[run], []
    for number, name in enumerate(chain):
        made = {"started": 100.0 * number, "wall_seconds": 50.0}
        sealed.write(tmp_path / paths.train_manifest(name), {"model_sha256": name, "provenance": made})
        names.append(paths.train_manifest(name))
    for name in (paths.shard(run, chosen.id, 1, 1), paths.evaluation(run, chosen.id)):
        sealed.write(tmp_path / name, {"model": run})
        names.append(name)
    stamp(tmp_path, reversed(names))
    return tmp_path, names


def stamp(folder, names):
    for second, name in enumerate(names):
        os.utime(folder / name, (1e9 + second, 1e9 + second))


def order(folder, names):
    return sorted(names, key=lambda name: (folder / name).stat().st_mtime_ns)


def test_stamps_follow_what_was_made_from_what(planned, results):
    folder, names = results
    assert times.repair(planned, folder) == names[1:]
    assert order(folder, names) == names
    assert times.repair(planned, folder) == []


def test_right_stamps_are_left(planned, results):
    folder, names = results
    stamp(folder, names)
    before = [(folder / name).stat().st_mtime_ns for name in names]
    assert times.repair(planned, folder) == []
    assert [(folder / name).stat().st_mtime_ns for name in names] == before


def test_an_evaluation_of_another_network_stays_old(planned, results):
    folder, names = results
    for name in names[-2:]:
        sealed.write(folder / name, {"model": "another"})
    stamp(folder, reversed(names))
    assert not set(names[-2:]) & set(times.repair(planned, folder))


def test_a_child_of_an_earlier_training_of_its_parent_stays_old(planned, results):
    folder, names = results
    sealed.write(folder / names[0], {"model_sha256": "x", "provenance": {"started": 1000.0, "wall_seconds": 1.0}})
    stamp(folder, reversed(names))
    assert names[1] not in times.repair(planned, folder)


def test_damaged_results_prove_nothing(planned, results):
    folder, names = results
    (folder / names[-1]).write_text("{}")
    stamp(folder, reversed(names))
    assert names[-1] not in times.repair(planned, folder)
