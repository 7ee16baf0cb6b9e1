"""The settings that recipes, tables and scales make together: one reviewed file, and the facts that a slip would change."""

import dataclasses
import difflib
from pathlib import Path

import pytest
import yaml

from tests.workflow.planning import resolved
from workflow.suite.planning import config, plan, recipes, resolve

NOWHERE = Path("no-data-here")


@pytest.fixture(scope="module")
def paper():
    return plan.load("paper", data_root=NOWHERE)


def specs(planned, **wanted):
    """The Runs of a plan that have these settings at their first level."""
    return [run.spec for run in planned.runs.values() if all(run.spec.get(key) == value for key, value in wanted.items())]


def test_every_run_at_scale_paper_is_as_reviewed(paper):
    reviewed, now = resolved.FILE.read_text(), resolved.text(paper)
    difference = "\n".join(difflib.unified_diff(reviewed.splitlines(), now.splitlines(), "reviewed", "now", lineterm="", n=0))
    advice = "If the change is meant, run `python -m tests.workflow.planning.resolved` and review the difference."
    assert not difference, f"the settings of Runs at scale paper changed:\n{difference[:4000]}\n{advice}"


def test_the_reviewed_file_leaves_no_setting_out(paper):
    """Title, shared settings and a Run's own, put together again, are the Runs of the plan."""
    listed = []
    for title, group in yaml.safe_load(resolved.FILE.read_text()).items():
        named = dict(part.split(" ", 1) for part in title.split(", "))
        listed += [{**named, **group["shared"], **own} for own in group["runs"]]
    planned = [resolved.settings(paper, name) for name in paper.runs]
    assert sorted(map(_text, listed)) == sorted(map(_text, planned))


def _text(flat):
    return str(sorted((key, str(value)) for key, value in flat.items()))


def test_ours_decays_scores_on_imagenet_by_two_to_the_minus_15(paper):
    """Edge-popup's ImageNet recipe, which the official code took over; 5e-4 on CIFAR, as the paper says."""
    decays = {(spec["dataset"], spec["train"]["weight_decay"]) for spec in specs(paper, method="binary_subnet")}
    assert decays == {("cifar10", 5e-4), ("cifar100", 5e-4), ("imagenet100", 2.0**-15)}


@pytest.mark.parametrize(
    ("dataset", "arch", "lr", "milestones", "epochs"),
    [
        ("cifar10", "rn34", 0.1, [200, 300], 400),
        ("cifar100", "small_rn34_p10", 0.1, [200, 300], 400),
        ("cifar10", "small_rn18_p01", 0.01, [100, 200, 300], 400),
        ("cifar10", "small_rn50_p01", 0.01, [100, 200, 300], 400),
        ("imagenet100", "rn34", 0.1, [50, 75], 100),
    ],
)
def test_milestones_of_adversarial_training(paper, dataset, arch, lr, milestones, epochs):
    chosen = specs(paper, method="at", dataset=dataset, arch=arch)
    assert chosen
    for spec in chosen:
        assert spec["train"]["milestones"] == milestones
        assert spec["train"]["epochs"] == epochs
        assert spec["train"]["lr"] == lr


def test_scale_paper_evaluates_every_test_image(paper):
    assert {evaluation.spec["examples"] for evaluation in paper.evaluations.values()} == {"all"}


def test_scale_lite_trains_at_least_two_epochs():
    """HYDRA prunes for 20 epochs, on ImageNet-100 for 10: a tenth of that is one."""
    recipe, lite = recipes.load_all(config.ROOT)["hydra"], config.load_scale("lite")

    def epochs(dataset: str) -> dict[str, int]:
        cell = {"method": "hydra", "dataset": dataset, "precision": "fp"}
        runs = {phase: resolve.resolve(recipe, cell, scale=lite, seed=1, root=NOWHERE, phase=phase) for phase in recipe.phases}
        return {phase: run["train"]["epochs"] for phase, run in runs.items()}

    assert recipe.phases["prune"].run["train"]["epochs"] == 20
    assert epochs("cifar10") == {"pretrain": 10, "prune": 2, "finetune": 10}  # of 100, 20, 100
    assert epochs("imagenet100") == {"pretrain": 5, "prune": 2, "finetune": 5}  # of 50, 10, 50


def test_at_least_raises_and_leaves_what_is_larger(repository):
    recipe, scale = recipes.load_all(repository)["binary_subnet"], config.load_scale("paper")
    for floor, epochs in ((401, 401), (400, 400), (399, 400)):
        changed = dataclasses.replace(scale, rewrite={"train.epochs": {"at_least": floor}})
        spec = resolve.resolve(recipe, {"dataset": "cifar10"}, scale=changed, seed=1, root=NOWHERE)
        assert spec["train"]["epochs"] == epochs


def part(epochs):
    return {"train": {"epochs": epochs}} if epochs else {}


@pytest.mark.parametrize(
    ("table", "column", "row", "when", "epochs"),
    [(1, None, None, None, 1), (1, 2, None, None, 2), (1, 2, 3, None, 3), (1, 2, 3, 4, 4), (1, None, 3, None, 3), (None, 2, None, 4, 4)],
)
def test_a_rows_condition_wins_over_the_row_over_the_column_over_the_table(repository, table, column, row, when, epochs):
    values = {
        **{"title": "Order", "metric": "robust_acc", "stub": ["Method"]},
        "run": part(table),
        "columns": [{"id": "c", "head": ["C"], "run": {"dataset": "cifar10", **part(column)}}],
        "rows": [
            {"id": "r", "labels": ["R"], "run": {"method": "binary_subnet", **part(row)}, "when": [[{"dataset": "cifar10"}, part(when)]]}
        ],
    }
    (repository / "workflow" / "config" / "tables" / "small.yaml").write_text(yaml.safe_dump(values))
    planned = plan.load("paper", data_root=NOWHERE, root=repository)
    (run,) = planned.runs.values()
    assert run.spec["train"]["epochs"] == epochs
