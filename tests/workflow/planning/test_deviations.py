"""The page of deviations follows from the recipes."""

from tests.workflow.repository import OURS, write_method
from workflow.suite.__main__ import main
from workflow.suite.planning import config, deviations, recipes


def test_the_committed_page_is_current():
    page = deviations.page(recipes.load_all(config.ROOT).values())
    assert (config.ROOT / deviations.PAGE).read_text() == page, "run `python -m workflow.suite deviations` and commit docs/deviations.md"


def test_a_deviation_is_a_line_of_its_methods_table(repository):
    entries = [["attack | steps", "20", "10", "the paper\nsays 10"], ["batch", "<128>", "64", "memory"]]
    write_method(repository, "mine", {**OURS, "name": "Mine", "deviations": entries})
    path = deviations.write_page(repository, repository)
    assert path == repository / "docs" / "deviations.md"
    sections = path.read_text().split("\n## ")
    assert [section.splitlines()[0] for section in sections[1:]] == [
        "Ours (`methods/binary_subnet.py`)",
        "Phased (`baselines/hydra.py`)",
        "Mine (`baselines/mine.py`)",
    ]
    assert "None are recorded." in sections[1]
    assert sections[3].splitlines()[4:] == [
        "| About | There | Here | Why |",
        "| --- | --- | --- | --- |",
        "| attack \\| steps | 20 | 10 | the paper says 10 |",
        "| batch | &lt;128> | 64 | memory |",
    ]


def test_the_command_writes_the_page(monkeypatch, tmp_path, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["deviations", "--directory", str(tmp_path)]) == 0
    assert (tmp_path / "docs" / "deviations.md").read_text() == (config.ROOT / "docs" / "deviations.md").read_text()
    assert str(tmp_path / "docs" / "deviations.md") in capsys.readouterr().out
