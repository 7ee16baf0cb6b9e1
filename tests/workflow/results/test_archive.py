"""Sets of results as one archive: what goes in comes out, and nothing else does."""

import json
import os
import zipfile

import pytest

from methods.core import files, paths, sealed
from methods.core.errors import UserError
from workflow.suite.planning import plan
from workflow.suite.results import archive


@pytest.fixture
def planned(repository, tmp_path):
    return plan.load("demo", data_root=tmp_path / "data", root=repository)


@pytest.fixture
def results(planned, tmp_path):
    """One finished and evaluated Run, one that is only begun."""
    folder = tmp_path / "there"
    run, begun = planned.final_runs()[0], planned.final_runs()[1]
    chosen = planned.evaluations[run]
    sealed.write(folder / paths.train_manifest(run), {"spec": planned.runs[run].spec})
    sealed.write(folder / paths.evaluation(run, chosen.id), {"clean_acc": 0.5, "n": 2, "n_clean": 1})
    sealed.write(folder / paths.shard(run, chosen.id, 1, chosen.shards), {"blocks": []})
    sealed.write(folder / paths.security_curve(run, "L2"), {"radii": ["1/2"], "accuracy": [0.5]})
    files.write(folder / paths.history(run), '{"epoch": 0}\n')
    files.write(folder / paths.compact(run), b"\x00network")
    files.write(folder / paths.model(run), b"dense")
    files.write(folder / paths.history(begun), "")
    return folder, run


def test_a_set_survives_the_journey(planned, results, tmp_path):
    folder, run = results
    assert archive.export(planned, folder, tmp_path / "set.zip") == 1
    assert archive.unpack(tmp_path / "set.zip", tmp_path / "here") == 1
    names = sorted(path.relative_to(tmp_path / "here").as_posix() for path in (tmp_path / "here").rglob("*") if path.is_file())
    assert names == sorted(archive.finished_files(planned, folder))
    for name in names:
        assert (tmp_path / "here" / name).read_bytes() == (folder / name).read_bytes()
    assert paths.security_curve(run, "L2") in names
    assert paths.model(run) not in names


def test_equal_results_make_equal_archives(planned, results, tmp_path):
    for name in ("one", "two"):
        archive.export(planned, results[0], tmp_path / f"{name}.zip")
    assert (tmp_path / "one.zip").read_bytes() == (tmp_path / "two.zip").read_bytes()


def test_importing_twice_changes_nothing(planned, results, tmp_path):
    archive.export(planned, results[0], tmp_path / "set.zip")
    assert archive.unpack(tmp_path / "set.zip", results[0]) == 1


def made_by(folder, run, **provenance):
    """Let the manifest of a Run name the machine that made it."""
    value = sealed.read(folder / paths.train_manifest(run))
    sealed.write(folder / paths.train_manifest(run), value | {"provenance": provenance})


def test_names_of_machines_stay_at_home(planned, results, tmp_path):
    folder, run = results
    made_by(folder, run, host="somewhere", slurm_job="17", torch="2.0")
    archive.export(planned, folder, tmp_path / "set.zip")
    archive.unpack(tmp_path / "set.zip", tmp_path / "here")
    assert sealed.read(tmp_path / "here" / paths.train_manifest(run))["provenance"] == {"torch": "2.0"}
    assert sealed.read(folder / paths.train_manifest(run))["provenance"]["host"] == "somewhere"


@pytest.mark.parametrize("mine", [{"host": "here", "torch": "2.0"}, {"torch": "2.0"}])
def test_a_result_that_differs_in_its_machine_alone_is_the_same(planned, results, tmp_path, mine):
    folder, run = results
    made_by(folder, run, host="there", torch="2.0")
    archive.export(planned, folder, tmp_path / "set.zip")
    made_by(folder, run, **mine)
    before = (folder / paths.train_manifest(run)).read_bytes()
    assert archive.unpack(tmp_path / "set.zip", folder) == 1
    assert (folder / paths.train_manifest(run)).read_bytes() == before


def test_a_phase_that_was_trained_again_is_the_same_where_its_numbers_are(planned, results, tmp_path):
    """A clone has no state for children and trains such a phase again: as long as the outcome agrees, when and how fast says nothing."""
    folder, run = results
    first = {"started": 1.0, "wall_seconds": 9.0, "device_seconds": 8.0, "git": "aaa", "dirty": False, "source": "code"}
    again = {"started": 2.0, "wall_seconds": 5.0, "device_seconds": 4.0, "git": "bbb", "dirty": True, "source": "code"}
    made_by(folder, run, **again)
    archive.export(planned, folder, tmp_path / "set.zip")
    made_by(folder, run, **first)
    assert archive.unpack(tmp_path / "set.zip", folder) == 1
    assert sealed.read(folder / paths.train_manifest(run))["provenance"] == first
    made_by(folder, run, **first | {"source": "other code"})
    with pytest.raises(UserError, match="is there already with other contents"):
        archive.unpack(tmp_path / "set.zip", folder)


@pytest.mark.parametrize("mine", ['{"provenance": {"torch": "2.1"}}', "[]", "{"])
def test_a_result_that_differs_in_more_is_another(planned, results, tmp_path, mine):
    folder, run = results
    made_by(folder, run, host="there", torch="2.0")
    archive.export(planned, folder, tmp_path / "set.zip")
    (folder / paths.train_manifest(run)).write_text(mine)
    with pytest.raises(UserError, match="is there already with other contents"):
        archive.unpack(tmp_path / "set.zip", folder)


def test_what_is_there_keeps_its_time_stamp(planned, results, tmp_path):
    folder, run = results
    archive.export(planned, folder, tmp_path / "set.zip")
    os.utime(folder / paths.train_manifest(run), (1e9, 1e9))
    archive.unpack(tmp_path / "set.zip", folder)
    assert (folder / paths.train_manifest(run)).stat().st_mtime == 1e9


def test_nothing_of_ones_own_is_overwritten(planned, results, tmp_path):
    folder, run = results
    archive.export(planned, folder, tmp_path / "set.zip")
    files.write(folder / paths.history(run), '{"epoch": 1}\n')
    with pytest.raises(UserError, match="is there already with other contents"):
        archive.unpack(tmp_path / "set.zip", folder)


def test_damage_is_not_exported(planned, results, tmp_path):
    folder, run = results
    path = folder / paths.train_manifest(run)
    path.write_text(path.read_text().replace("cifar10", "cifar11"))
    with pytest.raises(UserError, match="is damaged"):
        archive.export(planned, folder, tmp_path / "set.zip")
    assert not (tmp_path / "set.zip").exists()


def test_an_empty_set_is_refused(planned, tmp_path):
    with pytest.raises(UserError, match="no Run of scale 'demo' is finished"):
        archive.export(planned, tmp_path, tmp_path / "set.zip")


def rewritten(path, **members):
    """The archive with some members replaced."""
    with zipfile.ZipFile(path) as source:
        contents = {name: source.read(name) for name in source.namelist()} | members
    with zipfile.ZipFile(path, "w") as target:
        for name, content in contents.items():
            target.writestr(name, content)


@pytest.mark.parametrize("name", ["/etc/passwd", "results/runs/../../x", "elsewhere/x", "results/frames/x"])
def test_members_stay_in_their_place(planned, results, tmp_path, name):
    path = tmp_path / "set.zip"
    archive.export(planned, results[0], path)
    rewritten(path, **{"index.json": json.dumps({"format": 1, "scale": "demo", "files": {name: "0"}}), name: b"x"})
    with pytest.raises(UserError, match="does not lie below results/runs"):
        archive.unpack(path, tmp_path / "here")
    assert not (tmp_path / "here").exists()


def test_a_changed_member_is_refused(planned, results, tmp_path):
    path = tmp_path / "set.zip"
    archive.export(planned, results[0], path)
    rewritten(path, **{paths.history(results[1]): b"{}"})
    with pytest.raises(UserError, match="does not have the SHA-256 of the index"):
        archive.unpack(path, tmp_path / "here")
    assert not (tmp_path / "here").exists()


@pytest.mark.parametrize("content", [b"", b"PK", b"[]"])
def test_what_is_no_archive_is_refused(tmp_path, content):
    (tmp_path / "x.zip").write_bytes(content)
    with pytest.raises(UserError, match="is not an archive of results"):
        archive.unpack(tmp_path / "x.zip", tmp_path / "here")


def test_a_bomb_is_not_opened(planned, results, tmp_path):
    path = tmp_path / "set.zip"
    archive.export(planned, results[0], path)
    name = paths.compact(results[1])
    with zipfile.ZipFile(path) as source:
        contents = {each: source.read(each) for each in source.namelist()}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as target:
        for each, content in (contents | {name: bytes(archive.LARGEST + 1)}).items():
            target.writestr(each, content)
    with pytest.raises(UserError, match="more than any file of a Run has"):
        archive.unpack(path, tmp_path / "here")
