"""What a killed Snakemake leaves behind."""

import pytest
from snakemake.persistence.file import FilePersistence

from workflow.suite.jobs import leftovers


@pytest.mark.parametrize("name", ["results/runs/x.0123456789ab/train.json", "results/" + "long/" * 90 + "x.json"])
def test_marks_are_named_as_snakemake_names_them(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    persistence = FilePersistence()
    persistence._mark_incomplete(name, None)
    mark = leftovers.marker(tmp_path, name)
    assert mark.is_file()
    content = mark.read_text()
    mark.unlink()
    leftovers.unfinished(tmp_path, name)
    assert mark.read_text() == content
