"""Seeds: of a row, else of its table, else of the command line, else of the scale."""

import pytest

from methods.core.errors import UserError
from workflow.suite.__main__ import main
from workflow.suite.planning import config, plan
from workflow.suite.tables.caption import seeds_line


@pytest.fixture
def seeded(repository):
    """seeded(table=..., row=..., seeds=...) is the plan with seeds of the table and of its row 'ours'."""
    path = repository / "workflow" / "config" / "tables" / "small.yaml"
    text = path.read_text()

    def load(table=None, row=None, seeds=None):
        changed = text.replace("metric:", f"seeds: {table}\nmetric:", 1) if table else text
        path.write_text(changed.replace("id: ours", f"id: ours\n    seeds: {row}", 1) if row else changed)
        return plan.load("demo", data_root=repository, root=repository, seeds=seeds)

    return load


def seeds_of(planned, address):
    return planned.seeds_of(planned.cells[address])


@pytest.mark.parametrize(
    ("table", "row", "seeds", "ours", "other"),
    [
        (None, None, None, (1234,), (1234,)),
        (None, [1, 2, 3], None, (1, 2, 3), (1234,)),
        ([4, 5], None, None, (4, 5), (4, 5)),
        ([4, 5], [3, 1], None, (3, 1), (4, 5)),
        (None, None, (8, 9), (8, 9), (8, 9)),
        (None, [1, 2, 3], (8, 9), (1, 2, 3), (8, 9)),
    ],
)
def test_who_says_the_seeds(seeded, table, row, seeds, ours, other):
    planned = seeded(table, row, seeds)
    assert seeds_of(planned, "small.ours.binary") == ours
    assert seeds_of(planned, "small.other.binary") == other


def test_a_cell_without_runs_has_no_seeds(seeded):
    planned = seeded(row=[1, 2])
    assert seeds_of(planned, "small.ours.fp") == ()
    assert seeds_of(planned, "small.later.fp") == ()


def test_seeds_of_one_row_rename_no_other_run(seeded):
    before, after = seeded(), seeded(row=[1234, 1])
    assert set(before.runs) < set(after.runs)
    assert len(set(after.runs) - set(before.runs)) == 1


@pytest.mark.parametrize("seeds", ["[]", "[1, 1]", "[-1]", "[x]", "5"])
def test_wrong_seeds_are_one_clear_message(seeded, seeds):
    with pytest.raises(UserError, match=r"small.yaml: rows\[2\].seeds.* is not allowed; allowed: "):
        seeded(row=seeds)


@pytest.mark.parametrize(("given", "seeds"), [([1, 2], (1, 2)), (["1", "2"], (1, 2)), (7, (7,)), ("7", (7,))])
def test_seeds_on_snakemakes_command_line(given, seeds):
    """It hands over numbers in brackets as words."""
    assert config.load_suite({"scale": "demo", "data_root": "d", "allow_cpu": False, "seeds": given}).seeds == seeds


@pytest.mark.parametrize("given", [[], ["x"], [1, 1], -1, [1.5], ["１"]])
def test_wrong_seeds_on_snakemakes_command_line(given):
    with pytest.raises(UserError, match=r"suite.yaml: seeds.* is not allowed; allowed: "):
        config.load_suite({"scale": "demo", "data_root": "d", "allow_cpu": False, "seeds": given})


def test_without_them_the_scale_decides():
    assert config.load_suite().seeds is None


def test_seeds_on_the_suites_command_line(capsys):
    assert main(["plan", "--scale", "demo", "--table", "bn_ablation", "--seeds", "1,2"]) == 0
    assert "16 distinct final Runs" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        main(["plan", "--seeds", "1,1"])
    assert "'1,1' is not a list of different seeds such as 1,2,3" in capsys.readouterr().err


def test_a_table_says_its_seeds(seeded):
    assert seeds_line(seeded(), "small") == "1234"
    assert seeds_line(seeded(seeds=(1, 2)), "small") == "1, 2"
    assert seeds_line(seeded(row=[1, 2, 3]), "small") == "1234 (in some rows 1, 2, 3)"


def test_a_scale_has_other_seeds_for_some_cells(repository):
    """By what their table says of them; the last condition that holds; a list on the command line takes the place of all."""
    path = repository / "workflow" / "config" / "scales" / "demo.yaml"
    pairs = "[[{method: binary_subnet}, [1, 2]], [{method: binary_subnet, precision: binary}, [1, 2, 3]], [{method: rst}, [9]]]"
    path.write_text(path.read_text() + f"\nseeds_when: {pairs}\n")
    planned = plan.load("demo", data_root=repository, root=repository)
    assert seeds_of(planned, "small.ours.binary") == (1, 2, 3)
    assert seeds_of(planned, "small.other.binary") == (1234,)
    planned = plan.load("demo", data_root=repository, root=repository, seeds=(7,))
    assert seeds_of(planned, "small.ours.binary") == (7,)


def test_conditions_of_seeds_are_checked(repository):
    path = repository / "workflow" / "config" / "scales" / "demo.yaml"
    path.write_text(path.read_text() + "\nseeds_when: [[{methd: rst}, [9]]]\n")
    with pytest.raises(UserError, match=r"demo.yaml: seeds_when\[0\]: unknown key 'methd'"):
        plan.load("demo", data_root=repository, root=repository)


def test_a_table_of_one_scale(repository):
    path = repository / "workflow" / "config" / "tables" / "small.yaml"
    path.write_text(path.read_text().replace("metric:", "scales: [paper]\nmetric:", 1))
    assert "small" not in plan.load("demo", data_root=repository, root=repository).tables
    assert "small" in plan.load("paper", data_root=repository, root=repository).tables
    path.write_text(path.read_text().replace("scales: [paper]", "scales: [huge]", 1))
    with pytest.raises(UserError, match=r"small.yaml: scales: no scale is called 'huge'; allowed: demo"):
        plan.load("demo", data_root=repository, root=repository)
