"""Configuration files: what is wrong is said with file, key and allowed values."""

from dataclasses import replace

import pytest
import yaml

from methods.core.errors import UserError
from workflow.suite.planning import config
from workflow.suite.planning.tables import load_table, load_tables


@pytest.fixture
def edit(repository):
    """edit(kind, name, change) rewrites a YAML file of the small repository and returns its configuration folder."""
    folder = repository / "workflow" / "config"

    def apply(kind, name, change):
        path = folder / kind / f"{name}.yaml"
        values = yaml.safe_load(path.read_text())
        change(values)
        path.write_text(yaml.safe_dump(values))
        return folder

    return apply


def test_the_shipped_scales_and_suite_are_sound():
    assert set(config.names("scales")) >= {"demo", "lite", "paper"}
    loaded = {name: config.load_scale(name) for name in config.names("scales")}
    assert loaded["paper"].comparable
    assert not loaded["paper"].rewrite
    assert not loaded["paper"].when
    assert not loaded["demo"].comparable
    assert not loaded["lite"].comparable
    assert config.load_suite().scale == "demo"


def test_a_scale_says_only_what_it_changes_of_another():
    paper, lowered = config.load_scale("paper"), config.load_scale("paper_bf16")
    assert lowered == replace(paper, name="paper_bf16", path=lowered.path, why=lowered.why, rewrite={"train.compute": "bf16"})
    assert lowered.comparable
    assert "bfloat16" in lowered.why


@pytest.mark.parametrize(
    ("base", "message"),
    [
        ("bogus", r"other\.yaml: extends: 'bogus' is not allowed; allowed: a whole scale, demo"),
        ("other", "extends: 'other' is not allowed"),
    ],
)
def test_a_scale_extends_a_whole_one(repository, base, message):
    folder = repository / "workflow" / "config"
    (folder / "scales" / "other.yaml").write_text(f"extends: {base}\n")
    with pytest.raises(UserError, match=message):
        config.load_scale("other", folder)


@pytest.mark.parametrize("kind", ["scales", "tables"])
def test_an_unknown_name_lists_the_known_ones(kind, repository):
    load = {"scales": config.load_scale, "tables": load_table}[kind]
    with pytest.raises(UserError, match=rf"{kind}: no {kind[:-1]} is called 'bogus'; allowed: (demo|small)"):
        load("bogus", repository / "workflow" / "config")


def put(*path, value):
    def change(values):
        for step in path[:-1]:
            values = values[step]
        values[path[-1]] = value

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (put("colour", value=1), "unknown key 'colour'; allowed: comparable, data"),
        (put("rewrite", "train.epoch", value=1), "rewrite: unknown key 'train.epoch'; allowed:.*train.epochs"),
        (put("rewrite", "width", value=-1), r"rewrite.width: -1 is not allowed; allowed: a factor"),
        (put("rewrite", "sparsity", value=1), r"rewrite.sparsity: 1 is not allowed; allowed: a pruned fraction"),
        (put("rewrite", "train.batch", value={"atmost": 3}), "a mapping of times, at_least, at_most"),
        (put("when", value=[[{"dataset": "cifar10"}, {"eps": "x"}]]), r"when\[0\].eps: 'x' is not allowed"),
        (put("data", "cifar10", value="mirror"), "data.cifar10: 'mirror' is not allowed; allowed: full, sample, stand-in"),
        (put("evaluate", "attack", value="autoattack"), "evaluate.attack: 'autoattack' is not allowed; allowed: standard"),
        (put("evaluate", "attack", "apgd_itr", value=3), "evaluate: .*'apgd_itr'.*; allowed: .*apgd_iter"),
        (put("evaluate", "attack", "attacks", value=["apgd-cee"]), "evaluate: .*apgd-cee.*; allowed: .*apgd-ce"),
        (put("evaluate", "when", value=[[{}, {"attack": {"version": "custom", "tragets": 1}}]]), r"evaluate.when\[0\]: .*'tragets'"),
        (put("evaluate", "examples", value=0), "evaluate.examples: 0 is not allowed"),
        (put("evaluate", "shards", value=0), "evaluate.shards: 0 is not allowed; allowed: a value of type integer, at least 1"),
        (put("seeds", value=[]), "seeds"),
    ],
)
def test_a_wrong_scale_is_one_clear_message(edit, change, message):
    folder = edit("scales", "demo", change)
    with pytest.raises(UserError, match=rf"demo.yaml: .*{message}|demo.yaml: {message}"):
        config.load_scale("demo", folder)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (put("colour", value=1), "unknown key 'colour'; allowed: caption, columns"),
        (put("rows", 0, "run", "sparsity", value=2), r"row 'ref', run.sparsity: 2 is not allowed; allowed: a pruned fraction r"),
        (put("rows", 0, "run", "p", value=-1), r"row 'ref', run.p: -1 is not allowed"),
        (put("rows", 0, "run", "ach", value="rn18"), r"row 'ref', run: unknown key 'ach'"),
        (put("columns", 0, "run", "dataset", value="mnist"), r"column 'fp', run.dataset: 'mnist' is not allowed; allowed: cifar10"),
        (put("rows", 1, "id", value="ref"), "rows: the id 'ref' stands twice"),
        (put("rows", 1, "cells", value=[1.0]), "row 'other': cells: has 1 entries; allowed: one per column, 2"),
        (put("rows", 1, "labels", value=["a", "b"]), "row 'other': labels: has 2 entries"),
        (put("rows", 0, "cells", value=["x", 1]), r"rows\[0\].cells\[0\]: 'x' is not allowed; allowed: a number in percent"),
        (put("rows", 0, "cells", value=[[1, "red"], 1]), r"rows\[0\].cells\[0\]"),
        (put("rows", 2, "skip", value=[[{"prec": "fp"}, "no"]]), r"row 'ours', skip\[0\]: unknown key 'prec'"),
        (put("metric", value="accuracy"), "metric: 'accuracy' is not allowed; allowed: robust_acc, clean_acc"),
    ],
)
def test_a_wrong_table_is_one_clear_message(edit, change, message):
    folder = edit("tables", "small", change)
    with pytest.raises(UserError, match=f"small.yaml: {message}"):
        load_table("small", folder)


def test_unreadable_yaml_names_the_line(repository):
    folder = repository / "workflow" / "config"
    (folder / "tables" / "small.yaml").write_text("title: [\nlabel: x: y\n")
    with pytest.raises(UserError, match="small.yaml: is not YAML at line 2"):
        load_table("small", folder)


def test_a_key_that_stands_twice_is_refused(repository):
    """YAML readers take the last one and say nothing."""
    path = repository / "workflow" / "config" / "tables" / "small.yaml"
    path.write_text(path.read_text().replace("metric: robust_acc", "metric: robust_acc\nmetric: clean_acc"))
    with pytest.raises(UserError, match=r"small.yaml: is not YAML at line 6 \(the key 'metric' stands twice\)"):
        load_table("small", repository / "workflow" / "config")


def test_a_key_under_a_value_is_refused(edit):
    folder = edit("tables", "small", put("rows", 0, "run", value={"train": 3, "train.lr": 1}))
    with pytest.raises(UserError, match=r"small.yaml: row 'ref', run: 'train.lr' cannot be set: 'train' has a value of its own"):
        load_table("small", folder)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (
            {"scale": "demo", "data_root": "d", "allow_cpu": False, "cores": 3},
            "unknown key 'cores'; allowed: allow_cpu, data_root, gpu, gpus_per_run, imitate_bf16, longest_hours, scale",
        ),
        ({"scale": "demo", "data_root": "d", "allow_cpu": "yes"}, "allow_cpu: 'yes' is not allowed"),
        ({"scale": "demo"}, "missing key 'data_root', 'allow_cpu'"),
    ],
)
def test_wrong_suite_settings_are_one_clear_message(values, message):
    with pytest.raises(UserError, match=f"workflow/config/suite.yaml: {message}"):
        config.load_suite(values)


def test_tables_come_in_the_papers_order():
    """That of their captions in its source; the complexity table and the small networks stand between. Other tables come last."""
    tables = load_tables()
    assert list(tables)[:9] == [
        *("sp_ratio", "bn_ablation", "main_ablation", "main_comparison", "comparison_rn18_rn50"),
        *("vanilla_ablation", "complete_comparison", "comparison_vanilla", "vanilla"),
    ]
    assert {table.number for table in list(tables.values())[9:]} == {None}
