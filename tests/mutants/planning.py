"""Faults of recipes, scales and planning."""

from __future__ import annotations

from tests.mutants.mutant import in_file

SETTINGS = "tests/workflow/planning/test_settings.py"
GOLDEN = f"{SETTINGS}::test_every_run_at_scale_paper_is_as_reviewed"
ours = in_file("methods/binary_subnet.py", f"{SETTINGS}::test_ours_decays_scores_on_imagenet_by_two_to_the_minus_15")
at = in_file("baselines/at.py", f"{SETTINGS}::test_milestones_of_adversarial_training")
hydra = in_file("baselines/hydra.py", GOLDEN)
paper = in_file("workflow/config/scales/paper.yaml", f"{SETTINGS}::test_scale_paper_evaluates_every_test_image")
lite = in_file("workflow/config/scales/lite.yaml", f"{SETTINGS}::test_scale_lite_trains_at_least_two_epochs")
plan = in_file("workflow/suite/planning/plan.py", "tests/workflow/planning/test_plan.py", "tests/workflow/planning/test_seeds.py")
evaluations = in_file("workflow/suite/planning/evaluate.py", "tests/workflow/planning/test_plan.py")
resolve = in_file("workflow/suite/planning/resolve.py", "tests/workflow/planning/test_resolve.py", SETTINGS)
run_spec = in_file("methods/core/run_spec.py", "tests/methods/core/test_run_spec.py")
run_model = in_file("methods/core/run_model.py", "tests/methods/core/test_run_model.py")
run_check = in_file("methods/core/run_check.py", "tests/methods/core/test_run_check.py")
options = in_file("methods/core/options.py", "tests/methods/core/test_options.py")

MUTANTS = (
    ours("imagenet-decay-of-cifar", '"momentum": 0.875, "weight_decay": 3.0517578125e-05}', '"momentum": 0.875}'),
    ours("imagenet-decay-in-the-reviewed-file", '"weight_decay": 3.0517578125e-05', '"weight_decay": 3e-05', GOLDEN),
    at("at-first-milestone", '"milestones": [200, 300]', '"milestones": [100, 300]'),
    at("at-milestones-on-imagenet", '"milestones": [50, 75]', '"milestones": [50, 80]'),
    hydra("hydra-prunes-longer", '"run": {"train": {"epochs": 20}', '"run": {"train": {"epochs": 25}'),
    paper("scale-paper-samples", "examples: all", "examples: 1000"),
    lite("scale-lite-one-epoch", "at_least: 2", "at_least: 1"),
    lite("scale-lite-fewer-epochs", "times: 0.1", "times: 0.09"),
    resolve(
        "at-least-is-at-most",
        'scaled = max(scaled, change.get("at_least", scaled))',
        'scaled = min(scaled, change.get("at_least", scaled))',
    ),
    resolve("scales-cut-instead-of-round", "math.floor(scaled + 0.5)", "math.floor(scaled)"),
    resolve(
        "milestones-round-down", '_times(spec, "train.milestones", share, math.ceil)', '_times(spec, "train.milestones", share, math.floor)'
    ),
    resolve("recipe-wins-over-table", "spec = merge(spec, override, wanted)", "spec = merge(spec, wanted, override)"),
    resolve("attack-stays-without-radius", 'if spec.get("eps") == 0 or get', "if get"),
    resolve("ignored-keys-stay", "    for key in ignored:\n        drop(spec, key)\n", ""),
    resolve("a-wrong-run-is-planned", "        check_run(run)\n", ""),
    plan("row-before-column", "merge(table.run, column.run, row.run)", "merge(table.run, row.run, column.run)", SETTINGS),
    plan("column-before-table", "merge(table.run, column.run, row.run)", "merge(column.run, table.run, row.run)", SETTINGS),
    plan("conditions-of-rows-lose", "            keys = merge(keys, override)", "            keys = merge(override, keys)", SETTINGS),
    plan("table-seeds-win-over-row", "row.seeds or table.seeds or self._seeds(keys)", "table.seeds or row.seeds or self._seeds(keys)"),
    evaluations("one-evaluation-per-shard-count", '    shards = settings.pop("shards")', '    shards = settings["shards"]'),
    run_spec("another-attack-keeps-settings", 'value.get("name", old.get("name")) == old.get("name")', "True"),
    run_spec("none-names-a-run", " for key, item in value.items() if item is not None}", " for key, item in value.items()}"),
    run_spec("integral-floats-name-a-run", "return int(value) if value.is_integer() else value", "return value"),
    run_spec("lists-match-whole", "have in wanted if isinstance(wanted, list | tuple) else have == wanted", "have == wanted"),
    run_model("gaussian-start-is-taken", 'start: Literal["uniform", "none"]\n', "start: str\n"),
    run_model(
        "whole-pruning-is-taken",
        'Meta(ge=0, lt=1, description="a pruned',
        'Meta(ge=0, le=1, description="a pruned',
        "tests/workflow/planning/test_config.py",
    ),
    run_check("attack-takes-keys-of-others", '    if "name" in attack:', '    if "nam" in attack:'),
    run_check("conditions-are-not-checked", "            check_value(key, value, source=source, at=at)", "            pass"),
    options(
        "options-of-phases-forgotten",
        '    for phase in recipe.get("phases", {}).values():\n        yield expand(phase.get("run", {}))\n',
        "",
    ),
    options("options-of-any-kind", "return Union[(*kinds, None)] if kinds else Any", "return Any"),
)
