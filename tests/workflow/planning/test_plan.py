"""The plan: which cells have which Runs, what they share, how they are evaluated."""

import dataclasses
from pathlib import Path

import pytest

from methods.core import run_spec as spec
from methods.core.errors import UserError
from methods.core.run_check import check_run
from tests.workflow.repository import OURS, write_method
from workflow.suite.planning import config, evaluate, plan
from workflow.suite.planning.tables import load_tables

NOWHERE = Path("no-data-here")


@pytest.fixture
def small(repository):
    return plan.load("demo", data_root=NOWHERE, root=repository)


def test_every_cell_is_planned_or_says_why_not(small):
    cells = small.cells
    assert list(cells) == [f"small.{row}.{column}" for row in ("ref", "other", "ours", "later") for column in ("fp", "binary")]
    assert cells["small.ours.fp"].not_applicable == "binary only"
    assert not cells["small.ours.fp"].runs
    assert cells["small.later.fp"].unavailable == "method 'trades' is not implemented yet (no file baselines/trades.py)"
    assert cells["small.ours.binary"].notes == ("a remark",)
    assert cells["small.ref.fp"].notes == ()
    assert cells["small.other.binary"].reported.value is None
    assert cells["small.other.binary"].runs


def test_row_conditions_reach_the_run(small):
    assert small.runs[small.cells["small.ours.binary"].runs[0]].spec["init"]["a"] == 0.001


def test_parents_are_runs_and_are_shared(small):
    ref, other = (small.cells[f"small.{row}.binary"].runs[0] for row in ("ref", "other"))
    chains = [[run.spec["phase"] for run in small.lineage(name)] for name in (ref, other)]
    assert chains == [["quantised", "sparse", "dense"]] * 2
    assert small.lineage(ref)[2] == small.lineage(other)[2], "p = 0.1 and p = 1.0 start from one dense network"
    assert small.lineage(ref)[1] != small.lineage(other)[1]
    assert small.runs[ref].spec["parent"] == small.lineage(ref)[1].id
    assert "parent" not in small.lineage(ref)[2].spec
    assert set(small.evaluations) == set(small.final_runs()), "a phase that is only a parent is not evaluated"


def test_one_run_per_seed(repository):
    folder = repository / "workflow" / "config"
    scale = dataclasses.replace(config.load_scale("demo", folder), seeds=(1, 2, 3))
    built = plan.build(load_tables(folder), plan.recipes.load_all(repository), scale, data_root=NOWHERE)
    runs = built.cells["small.ours.binary"].runs
    assert [built.runs[run].spec["seed"] for run in runs] == [1, 2, 3]
    parents = [built.runs[run].parent for run in built.cells["small.ref.fp"].runs]
    assert [built.runs[parent].spec["seed"] for parent in parents] == [1, 2, 3]


def test_planning_twice_gives_the_same_plan(repository, small):
    assert plan.load("demo", data_root=NOWHERE, root=repository) == small


def test_a_scale_changes_runs_and_never_cells(repository, small):
    paper = plan.load("paper", data_root=NOWHERE, root=repository)
    assert list(paper.cells) == list(small.cells)
    assert not set(paper.runs) & set(small.runs)


def test_an_unknown_method_is_an_error_that_names_the_cell(repository):
    path = repository / "workflow" / "config" / "tables" / "small.yaml"
    path.write_text(path.read_text().replace("method: trades", "method: tradse"))
    with pytest.raises(UserError, match=r"small.yaml: row 'later', column 'fp': method: no method is called 'tradse'; allowed: at, atmc"):
        plan.load("demo", data_root=NOWHERE, root=repository)
    write_method(repository, "tradse", OURS)
    assert plan.load("demo", data_root=NOWHERE, root=repository).cells["small.later.fp"].runs


def test_one_evaluation_answers_all_that_is_asked_of_a_run():
    scale, run = config.load_scale("demo"), {"dataset": "cifar100"}
    both = evaluate.planned(run, scale, {"clean_acc", "robust_acc"})
    assert both == evaluate.planned(run, scale, {"robust_acc"})
    assert both.spec["eps"] == "4/255"
    assert both.spec["norm"] == "Linf"
    assert "shards" not in both.spec
    clean = evaluate.planned(run, scale, {"clean_acc"})
    assert clean.spec["attack"] == "clean"
    assert "eps" not in clean.spec
    assert clean.id != both.id
    more = dataclasses.replace(scale, evaluate={**scale.evaluate, "shards": 7})
    assert evaluate.planned(run, more, {"robust_acc"}).id == both.id, "how the work is cut is no part of an evaluation"
    assert evaluate.planned(run, more, {"robust_acc"}).shards == 7
    assert evaluate.planned(run, more, {"clean_acc"}).shards == 1


@pytest.fixture(scope="module")
def paper():
    return plan.load("paper", data_root=NOWHERE)


def test_the_papers_tables_share_their_runs(paper):
    same = ["main_comparison.ours", "comparison_vanilla.ours", "complete_comparison.ours"]
    runs = {paper.cells[f"{row}.cifar10-binary"].runs for row in same}
    runs |= {paper.cells["bn_ablation.a0001.lbn"].runs, paper.cells["main_ablation.p01.binary-lbn"].runs}
    assert len(runs) == 1
    assert paper.cells["sp_ratio.p01.r99"].runs == paper.cells["bn_ablation.a001.lbn"].runs
    assert paper.cells["sp_ratio.p10.r99"].runs == paper.cells["complete_comparison.ours-p10.cifar10-binary"].runs
    assert paper.cells["vanilla.ours.cifar10-binary"].runs == paper.cells["vanilla_ablation.p01.binary-lbn"].runs
    assert paper.cells["main_comparison.at-small.cifar10-fp"].runs == paper.cells["complete_comparison.at-small-p10.cifar10-fp"].runs


def test_clean_accuracy_of_robust_models_needs_no_second_evaluation(paper):
    for cell in paper.cells_of("comparison_vanilla"):
        for run in cell.runs:
            assert paper.evaluations[run].spec["attack"] == "standard"
    for cell in paper.cells_of("vanilla"):
        for run in cell.runs:
            assert paper.runs[run].spec["eps"] == 0
            assert paper.evaluations[run].spec["attack"] == "clean"


def test_cells_without_a_run_are_those_that_cannot_have_one(paper):
    why = {address: cell.not_applicable for address, cell in paper.cells.items() if cell.not_applicable}
    assert len(why) == 55
    assert all(paper.cells[address].reported.value is None for address in why)
    dashes = [a for a, cell in paper.cells.items() if cell.reported.value is None and not cell.not_applicable]
    assert {address.split(".")[1] for address in dashes} == {"bcs"}, "BCS is run although the paper prints dashes"


@pytest.mark.parametrize("scale", config.names("scales"))
def test_every_planned_run_is_sound(scale):
    """What recipes, tables and scales make together is again a Run, named by its content and after all its parents."""
    planned = plan.load(scale, data_root=NOWHERE)
    seen = set()
    for run in planned.runs.values():
        check_run(run.spec, source=run.name)
        assert run.id == spec.identity(run.spec)
        assert run.name.endswith(f".{run.id}")
        assert spec.canonical(run.spec) == run.text
        assert run.parent is None or run.parent in seen
        seen.add(run.name)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "skip: [[{precision: fp}",
            "skip: [[{options.no_such: 1}",
            r"small.yaml: row 'ours': unknown key 'options.no_such'; allowed: options",
        ),
        (
            "run: {method: binary_subnet}",
            "run: {method: binary_subnet, options: {no: 1}}",
            r"row 'ours', column 'binary': options: unknown key",
        ),
        (
            "run: {method: binary_subnet}",
            "run: {method: binary_subnet, attack: {stepz: 1}}",
            r"row 'ours', run.attack: unknown key 'stepz'",
        ),
    ],
)
def test_what_would_have_no_effect_is_refused(repository, old, new, message):
    path = repository / "workflow" / "config" / "tables" / "small.yaml"
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))
    with pytest.raises(UserError, match=message):
        plan.load("demo", data_root=NOWHERE, root=repository)


def test_a_scale_may_only_rewrite_options_that_a_method_has(repository):
    path = repository / "workflow" / "config" / "scales" / "demo.yaml"
    text = path.read_text()
    path.write_text(text.replace("rewrite:", "rewrite:\n  options.every: {times: 0.5}", 1))
    plan.load("demo", data_root=NOWHERE, root=repository)
    path.write_text(text.replace("rewrite:", "rewrite:\n  options.ever: {times: 0.5}", 1))
    with pytest.raises(
        UserError, match="demo.yaml: rewrite: unknown key 'options.ever'; allowed: options.every, options.seen, options.start"
    ):
        plan.load("demo", data_root=NOWHERE, root=repository)
