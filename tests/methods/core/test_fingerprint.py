"""The fingerprint counts science, not plumbing."""

import shutil

import pytest

from methods.core import fingerprint, imports, method_files
from methods.core.errors import UserError
from methods.core.revision import ROOT
from workflow.suite.results import stale

# Imported by trainings or evaluations, and known not to change a number.
CORE = (
    *("__init__", "closed", "durations", "errors", "files", "fingerprint", "imports", "method_files", "options", "paths", "revision"),
    *("run_check", "run_model", "run_spec", "sealed", "settings"),
)
PLUMBING = {
    "methods/__init__.py",
    *(f"methods/{command}.py" for command in ("train", "evaluate", "formats")),
    *(f"methods/core/{module}.py" for module in CORE),
    *(f"methods/distributed/{module}.py" for module in ("__init__", "launch", "torchrun")),
    *(path.relative_to(ROOT).as_posix() for room in ("runtime", "networks/compact") for path in (ROOT / "methods" / room).glob("*.py")),
    *("methods/core/trust.py", "methods/core/trust_checks.py"),
    *(path.relative_to(ROOT).as_posix() for path in (ROOT / fingerprint.TRUST).glob("*.py")),
    "baselines/__init__.py",
}


@pytest.fixture
def checkout(tmp_path):
    for name in ("methods", "baselines"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__", "*.webp"))
    return tmp_path


def edit(root, name):
    with (root / name).open("a") as stream:
        stream.write("\nEDITED = 1\n")


@pytest.mark.parametrize(
    "name",
    [
        "methods/runtime/heartbeat.py",
        "methods/distributed/launch.py",
        "methods/train.py",
        "methods/evaluate.py",
        "methods/warm.py",
        "methods/core/paths.py",
        "methods/core/run_spec.py",
        "methods/__init__.py",
        "methods/bench/train.py",
        "methods/networks/compact/mask.py",
    ],
)
def test_plumbing_makes_nothing_stale(checkout, name):
    training, evaluation = fingerprint.of_training("rst", checkout), fingerprint.of_evaluation(checkout)
    edit(checkout, name)
    assert stale.changed(training, checkout) == []
    assert stale.changed(evaluation, checkout) == []
    assert fingerprint.of_training("rst", checkout) == training
    assert checkout / name not in fingerprint.counted(["rst", "hydra"], checkout)


@pytest.mark.parametrize(
    ("name", "trained", "evaluated"),
    [
        ("methods/attacks/pgd.py", True, True),
        ("methods/data/split.py", True, True),
        ("methods/data/sample/__init__.py", True, True),
        ("methods/data/imagenet100_wnids.txt", True, True),
        ("methods/networks/resnet.py", True, True),
        ("methods/pruning/masks.py", True, True),
        ("methods/core/allocation.py", True, True),
        ("methods/core/architectures.py", True, True),
        ("methods/core/datasets.py", True, True),
        ("methods/core/radius.py", True, True),
        ("methods/core/signs.py", True, True),
        ("methods/training/loop.py", True, False),
        ("methods/distributed/synced_norm.py", True, False),
        ("methods/evaluation/block.py", False, True),
        ("methods/core/eval_spec.py", False, True),
        ("methods/core/eval_result.py", False, True),
        ("baselines/rst.py", True, False),
        ("baselines/hydra.py", False, False),
        ("methods/binary_subnet.py", True, False),  # which RST builds on
    ],
)
def test_science_makes_stale_what_it_made(checkout, name, trained, evaluated):
    training, evaluation = fingerprint.of_training("rst", checkout), fingerprint.of_evaluation(checkout)
    edit(checkout, name)
    assert stale.changed(training, checkout) == [name] * trained
    assert stale.changed(evaluation, checkout) == [name] * evaluated
    assert (fingerprint.combined(fingerprint.of_training("rst", checkout)) != fingerprint.combined(training)) == trained


def test_every_file_that_is_imported_is_counted_or_known_as_plumbing():
    """A new file of core or of another room has to be put on one side."""
    for method, file in method_files.located(ROOT).items():
        reached = {path.relative_to(ROOT).as_posix() for path in imports.behind("methods.train", file.module)}
        assert reached - fingerprint.of_training(method).keys() - PLUMBING == set(), method
    reached = {path.relative_to(ROOT).as_posix() for path in imports.behind("methods.evaluate")}
    assert reached - fingerprint.of_evaluation().keys() - PLUMBING == set()


def test_a_method_of_several_files_counts_with_all_of_them(checkout):
    folder = checkout / "baselines" / "mosaic" / "inner"
    folder.mkdir(parents=True)
    for path in (folder.parent / "__init__.py", folder / "parts.py"):
        path.write_text("")
    recorded = fingerprint.of_training("mosaic", checkout)
    edit(checkout, "baselines/mosaic/inner/parts.py")
    assert stale.changed(recorded, checkout) == ["baselines/mosaic/inner/parts.py"]


def test_words_about_a_program_do_not_count():
    plain = "RECIPE = {'a': 1}\n\n\ndef f(x):\n    return x + 1\n"
    told = '"""A module."""\nRECIPE = {\n    "a": 2,\n}\n\n\ndef f(x):\n    """A function."""\n    return (x + 1)  # one more\n'
    other = plain.replace("+ 1", "+ 2")
    assert fingerprint.digest(f'"""Something."""\n{plain}') == fingerprint.digest(told)
    assert fingerprint.digest(plain) != fingerprint.digest(other)


def test_an_unknown_method_is_refused(checkout):
    with pytest.raises(UserError, match="unknown 'method: alchemy'"):
        fingerprint.of_training("alchemy", checkout)
