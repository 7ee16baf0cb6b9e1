"""The cost model: what it counts against what really runs, and what it says."""

import json
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry

from methods import probe
from methods.core import architectures, eval_spec, paths, sealed
from methods.core.datasets import DATASETS
from methods.core.errors import UserError
from methods.data import load
from methods.networks import resnet
from methods.training.loop import train
from methods.training.resume import Resume
from tests.baselines.test_contract import make
from tests.specs import small
from workflow.suite.__main__ import main
from workflow.suite.cost import devices, limits, work
from workflow.suite.cost import runs as cost
from workflow.suite.cost.devices import Device, Rates
from workflow.suite.cost.report import within
from workflow.suite.cost.runs import Cost
from workflow.suite.cost.work import Work
from workflow.suite.planning import config, plan, schema


@cache
def planned(scale):
    return plan.load(scale, data_root=Path("no-such-data"))


def counted(arch, width, image):
    """Weights, multiplications and output elements of the real network, by running it without numbers."""
    found = []
    with torch.device("meta"):
        net = resnet.build(arch, classes=100, stem="imagenet" if image > 32 else "cifar", width=width)
        for _, conv in net.convs():
            conv.register_forward_hook(
                lambda m, _, out: found.append((m.weight.numel(), 2 * m.weight[0].numel() * out.numel(), out.numel()))
            )
        net.eval()(torch.zeros(1, 3, image, image))
    return len(found), *(sum(column) for column in zip(*found, strict=True))


@pytest.mark.parametrize("arch", sorted(architectures.ARCHS))
def test_networks_are_those_that_are_trained(arch):
    for width in (1, 0.125):
        for image in (32, 224):
            net = architectures.network({"arch": arch, "width": width}, classes=100, image=image)
            assert (len(net.layers), net.weights, net.flops, net.elements) == counted(arch, width, image)


class Flops(TorchDispatchMode):
    """Multiplications and additions of every operation, forward and backward, by torch's own formulas."""

    total = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        if formula := flop_registry.get(function.overloadpacket):
            self.total += formula(*args, **(kwargs or {}), out_val=result)
        return result


STEPS = [
    ("binary_subnet", {}),
    ("binary_subnet", {"attack": {"name": "fgsm_atta"}}),
    ("at", {"eps": 0}),
    ("rst", {}),
    ("trades", {"precision": "fp"}),
    ("hydra", {"phase": "prune"}),
    ("atmc", {"phase": "factorised"}),
    ("bcs", {}),
]


@pytest.mark.parametrize(("method", "keys"), STEPS, ids=lambda item: item if isinstance(item, str) else "-".join(map(str, item)) or "plain")
def test_a_training_does_the_work_that_is_predicted(tmp_path, method, keys):
    """The multiplications of a real training, counted where they are computed. A pass more or less is a tenth or so."""
    spec = small(method, arch="rn18", rewrite={"train.epochs": 1, "width": 0.125}, **keys)
    data = load.load("cifar10", source="sample", train=spec["data"]["train"], val=spec["data"]["val"])
    trained = make(method, spec, data)
    with Flops() as counter:
        train(trained, data, resume=Resume(tmp_path, "x"), log=lambda _: None)
    assert counter.total == pytest.approx(work.training(spec).flops, rel=0.04)


@pytest.mark.parametrize(
    "attack",
    [
        "standard",
        "clean",
        "pgd",
        {"version": "custom", "attacks": ["apgd-ce", "fab", "square", "apgd-dlr"], "apgd_iter": 7, "square_queries": 11, "restarts": 2},
        {"version": "custom", "attacks": ["apgd-t", "fab-t"], "fab_iter": 5, "targets": 3},
    ],
)
def test_attacks_cost_what_the_evaluation_says(attack):
    real = eval_spec.parse({"attack": attack}).attack
    assert work.attack_passes(attack) == {name: real.cost(name) for name in real.names}


@pytest.mark.parametrize(("dataset", "source"), [("cifar10", "sample"), ("cifar100", "stand-in"), ("imagenet100", "stand-in")])
def test_images_are_counted_as_they_are_split(dataset, source):
    real, facts = load.load(dataset, source=source), DATASETS[dataset]
    assert facts.counts({"source": source}) == (len(real.train), len(real.val))
    assert facts.counts({"source": source, "train": 9, "val": 5}) == (9, 5)
    assert (facts.test[source], facts.classes, facts.image) == (len(real.test), real.classes, real.shape[1])


def test_an_evaluation_costs_most_when_nothing_falls():
    run = planned("paper").final_runs("main_comparison")[0]
    spec, chosen = planned("paper").runs[run].spec, planned("paper").evaluations[run].spec
    worst = work.evaluation(spec, chosen)
    assert worst.flops == 10000 * work.network(spec).flops * (1 + 200 + 1800 + 2700 + 5000)
    half = work.evaluation(spec, chosen, right=0.5, robust=0.5)
    assert work.evaluation(spec, chosen, right=0.5, robust=0.0).flops < half.flops < worst.flops


def test_the_fit_finds_the_rates_behind_times():
    rates = {"flops": 2e-11, "elements": 0.0, "calls": 1e-4}
    works = [Work(flops=1e9, elements=3e6, calls=100), Work(flops=5e10, elements=2e7, calls=70), Work(flops=2e8, elements=1e6, calls=300)]
    seconds = [sum(rate * getattr(item, part) for part, rate in rates.items()) for item in works]
    assert devices.fit(works, seconds) == pytest.approx(tuple(rates.values()), rel=1e-6, abs=1e-18)
    assert min(devices.fit(works, [1.0, 0.1, 3.0])) >= 0


def call(capsys, *words):
    code = main(["cost", *words])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_a_probe_becomes_a_cost_and_its_error_is_told(tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(probe.POINTS, "cpu", [("rn18", 0.0625, 4), ("rn18", 0.0625, 16)])
    monkeypatch.setenv("SUITE_DEVICE", "cpu")
    file = tmp_path / paths.bench("probe")
    assert probe.main(["--out", str(file), "--repeats", "1"]) == 0
    device = devices.probed(file)
    assert device.measured
    assert "1 thread(s)" in device.title
    demo = planned("demo")
    made = json.loads(file.read_text())["provenance"]
    for number, run in enumerate(demo.final_runs("bn_ablation")[:3]):
        manifest = tmp_path / paths.train_manifest(run)
        manifest.parent.mkdir(parents=True)
        threads = 1 if number < 2 else 64
        seconds = 2 * cost.of_run(demo, run, device).train
        sealed.write(manifest, {"provenance": {**made, "threads": threads, "wall_seconds": seconds}})
    code, out, _ = call(capsys, "--directory", str(tmp_path), "--data-root", str(tmp_path), "--scale", "paper", "--table", "bn_ablation")
    assert code == 0
    assert "finished trainings of scale demo: median 0.50, four of five between 0.50 and 0.50 (2 of them)" in out
    assert "1 finished runs of other hardware" in out
    assert "measured: " in out


def test_tables_share_runs_and_the_total_counts_them_once(capsys, tmp_path):
    code, out, _ = call(capsys, "--scale", "paper", "--gpu", "v100", "--directory", str(tmp_path))
    assert code == 0
    assert "fp32: assumed: 57% of 15.7 TFLOP/s (367 images/s, NVIDIA DeepLearningExamples" in out
    assert "No price is known; --price states yours." in out
    assert "error of an assumed figure is not known" in out
    device, paper = devices.named("v100"), planned("paper")
    hours = {run: cost.of_run(paper, run, device) for run in paper.runs}
    total = sum(item.train + item.evaluate for item in hours.values()) / 3600
    line = next(line for line in out.splitlines() if line.startswith("all, each run once"))
    assert line.split()[4] == str(len(paper.runs))
    assert f"{total:,.2f}" in line
    tables = [sum(hours[run].train + hours[run].evaluate for run in cost.runs_of(paper, name)) / 3600 for name in paper.tables]
    assert all(f"{value:,.2f}" in out for value in tables)
    assert sum(tables) > total


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--gpu", "abacus"], "workflow/config/devices.yaml: no device is called 'abacus'; allowed: a100"),
        (["--probe", "nowhere.json"], "nowhere.json: no such file; measure with `python -m methods.probe"),
        (["--gpu", "a100", "--probe", "x.json"], "give one of them"),
        (["--table", "foo"], "no table is called 'foo'"),
        (["--row", "ours"], "--row ours: say of which table with --table"),
        (["--price", "-1"], "--price -1.0: a number of 0 or more"),
    ],
)
def test_wrong_input_is_one_line(capsys, words, message):
    code, out, err = call(capsys, *words)
    assert code == 2
    assert out == ""
    assert message in err
    assert err.count("\n") == 1


def test_a_file_that_is_no_probe_is_refused(tmp_path):
    (tmp_path / "p.json").write_text('{"points": []}')
    with pytest.raises(UserError, match="is not the result of a probe"):
        devices.probed(tmp_path / "p.json")


def test_limits_grow_with_the_try_and_end_at_the_longest():
    suite, paper, device = config.load_suite(), planned("paper"), devices.named("a100")
    run = paper.runs[paper.final_runs("main_comparison")[0]]
    first, second = (limits.train_minutes(run, device, suite, attempt) for attempt in (1, 2))
    hours = device.training(run.spec) / 3600
    assert first >= 60 * min(hours, 24)
    assert first <= second <= 24 * 60
    assert limits.train_minutes(run, device, replace(suite, longest_hours=0.5), 1) == 30
    slow = replace(device, rates={"fp32": replace(device.rates["fp32"], flops=1000 * device.rates["fp32"].flops)})
    assert limits.train_minutes(run, slow, suite, 1) == 24 * 60
    chosen = paper.evaluations[run.name]
    whole = limits.evaluate_minutes(run, replace(chosen, shards=1), slow, replace(suite, longest_hours=1e9), 1)
    part = limits.evaluate_minutes(run, replace(chosen, shards=4), slow, replace(suite, longest_hours=1e9), 1)
    assert whole / 4 < part < whole / 3.9
    for scale in ("paper", "demo"):
        run = next(iter(planned(scale).runs.values()))
        first = limits.megabytes(run.spec, planned(scale).scale, 1, images=256)
        assert 1500 < first < 32000
        assert limits.megabytes(run.spec, planned(scale).scale, 2, images=256) == 2 * first


def test_a_run_asks_for_its_gpus():
    settings = {"scale": "paper", "data_root": "data", "allow_cpu": False}
    suite, paper = config.load_suite({**settings, "gpus_per_run": {"imagenet100": "4"}}), planned("paper")  # as --config hands it over
    runs = {name: next(run for run in paper.runs.values() if run.spec["dataset"] == name) for name in ("cifar10", "imagenet100")}
    assert [limits.processes(run, suite, paper.scale) for run in runs.values()] == [1, 4]
    assert limits.processes(runs["imagenet100"], replace(suite, allow_cpu=True), paper.scale) == 1
    assert limits.processes(runs["imagenet100"], suite, planned("demo").scale) == 1
    spec = runs["cifar10"].spec
    per_device = replace(runs["cifar10"], spec={**spec, "train": {**spec["train"], "bn_devices": 2}})
    assert limits.processes(per_device, suite, planned("demo").scale) == 2
    with pytest.raises(UserError, match="gpus_per_run"):
        config.load_suite({**settings, "gpus_per_run": {"imagenet": 4}})


def test_limits_are_for_the_device_that_runs():
    suite = config.load_suite()
    assert limits.device(suite, planned("paper").scale) == devices.named(suite.gpu)
    for settings, scale in ((suite, "demo"), (replace(suite, allow_cpu=True), "paper")):
        assert limits.device(settings, planned(scale).scale) == devices.named("cpu")


def test_work_takes_time_in_each_of_its_parts():
    rates = Rates(flops=1.0, elements=10.0, calls=100.0)
    device = Device(title="x", rates={"fp32": rates, "bf16": replace(rates, flops=0.5)}, startup=1000.0)
    done = Work(flops=1, elements=2, calls=3) + Work(flops=1)
    assert device.seconds(done) == 2 + 20 + 300
    assert device.seconds(done, "bf16") == 1 + 20 + 300
    with pytest.raises(UserError, match="x: has no figures for 'train.compute: fp8'; it has: fp32, bf16"):
        device.seconds(done, "fp8")


def test_photographs_are_waited_for_where_reading_is_slower():
    device = Device(title="x", rates={"fp32": Rates(flops=1.0)}, photographs=10.0)
    assert device.seconds(Work(flops=5, photographs=40)) == 5
    assert device.seconds(Work(flops=5, photographs=60)) == 6
    paper = planned("paper")
    large = next(run.spec for run in paper.runs.values() if run.spec["dataset"] == "imagenet100")
    small_images = next(run.spec for run in paper.runs.values() if run.spec["dataset"] == "cifar10")
    assert work.training(large).photographs == 124156 * large["train"]["epochs"]
    assert work.training(small_images).photographs == 0
    one_core = replace(devices.named("a100"), photographs=devices.PHOTOGRAPHS)
    assert one_core.waits_for_photographs(large)
    assert one_core.training(large) >= 124156 * large["train"]["epochs"] / devices.PHOTOGRAPHS


def test_steps_are_priced_in_the_format_of_the_run_and_validation_in_single_precision():
    spec = next(run.spec for run in planned("paper").runs.values() if run.spec["dataset"] == "cifar10" and run.spec["eps"] != 0)
    lowered = {**spec, "train": {**spec["train"], "compute": "bf16"}}
    parts = work.training_by_format(lowered)
    assert set(parts) == {"bf16", "fp32"}
    assert parts["bf16"].flops + parts["fp32"].flops == pytest.approx(work.training(spec).flops)
    assert parts["fp32"].flops < 0.05 * parts["bf16"].flops  # two images of a hundred are validated on
    device = devices.named("a100")
    assert 2 < device.training(spec) / device.training(lowered) < 2.7
    with pytest.raises(UserError, match="NVIDIA V100: has no figures for 'train.compute: bf16'"):
        devices.named("v100").training(lowered)


def test_every_named_device_says_where_its_figures_come_from():
    for name in schema.read_yaml(config.CONFIG / "devices.yaml"):
        for rates in devices.named(name).rates.values():
            assert "TFLOP/s (" in rates.source


def test_money_rows_and_dearest_cells(capsys, tmp_path):
    code, out, _ = call(capsys, "--scale", "paper", "--gpu", "a100", "--price", "2", "--table", "bn_ablation", "--directory", str(tmp_path))
    assert code == 0
    assert "$2.00 per hour; --price states yours." in out
    line = next(line for line in out.splitlines() if line.startswith("bn_ablation")).split()
    assert float(line[6].replace(",", "")) == pytest.approx(2 * float(line[5].replace(",", "")), abs=0.02)
    device, paper = devices.named("a100"), planned("paper")
    hours = {cell.address: sum(cost.of_run(paper, run, device).usual for run in cell.runs) / 3600 for cell in paper.cells_of("bn_ablation")}
    first = out.splitlines()[next(i for i, text in enumerate(out.splitlines()) if "dearest cells" in text) + 2].split()
    assert float(first[2]) == pytest.approx(max(hours.values()), abs=0.01)
    row = paper.tables["bn_ablation"].rows[0].id
    code, part, _ = call(capsys, "--scale", "paper", "--gpu", "a100", "--table", "bn_ablation", "--row", row, "--directory", str(tmp_path))
    assert code == 0
    assert int(next(line for line in part.splitlines() if line.startswith("bn_ablation")).split()[1]) < int(line[1])


def test_a_budget_pays_for_the_cheapest_tables_and_for_shared_runs_once():
    costs = {run: Cost(train=3600.0 * hours) for run, hours in {"a": 1, "b": 2, "c": 3, "d": 9}.items()}
    tables = {"large": ["c", "d"], "small": ["a", "b"], "sharing": ["a", "b", "c"]}
    assert within(6.5, tables, costs) == [
        "6.50 hours pay for 2 of 3 tables, 6.00 h in all; not large",
        "  small: 3.00 h more",
        "  sharing: 3.00 h more",
    ]
    assert within(15, tables, costs)[0] == "15.00 hours pay for 3 of 3 tables, 15.00 h in all"
