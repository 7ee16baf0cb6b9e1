"""The suite's environment variables, and that nothing else reads them."""

import re
from pathlib import Path

import pytest

from methods.core import settings
from methods.core.errors import UserError
from methods.core.revision import ROOT


def test_defaults():
    assert settings.device({}) == "auto"
    assert settings.engine({}) == "auto"
    assert settings.data_root({}) is None
    assert settings.save_every({}) == 300.0
    assert settings.gpus_per_run({}) == {}
    assert settings.warm({}) is False
    assert settings.imitate_bf16({}) is False


def test_values():
    assert settings.device({"SUITE_DEVICE": "cuda"}) == "cuda"
    assert settings.engine({"SUITE_ENGINE": "sparse"}) == "sparse"
    assert settings.data_root({"SUITE_DATA_ROOT": "/images"}) == Path("/images")
    assert settings.save_every({"SUITE_SAVE_EVERY": "0"}) == 0.0
    assert settings.gpus_per_run({"SUITE_GPUS_PER_RUN": '{"imagenet100": 4}'}) == {"imagenet100": 4}
    assert settings.warm({"SUITE_WARM": "1"}) is True
    assert settings.imitate_bf16({"SUITE_IMITATE_BF16": "1"}) is True


@pytest.mark.parametrize(
    ("read", "variable", "value", "allowed"),
    [
        (settings.device, "SUITE_DEVICE", "gpu", "auto, cpu, cuda"),
        (settings.engine, "SUITE_ENGINE", "fast", "auto, dense, sparse"),
        (settings.warm, "SUITE_WARM", "yes", "0, 1"),
        (settings.imitate_bf16, "SUITE_IMITATE_BF16", "true", "0, 1"),
        (settings.save_every, "SUITE_SAVE_EVERY", "soon", "a number of seconds"),
        (settings.save_every, "SUITE_SAVE_EVERY", "-1", "a number of seconds"),
        (settings.save_every, "SUITE_SAVE_EVERY", "nan", "a number of seconds"),
        (settings.gpus_per_run, "SUITE_GPUS_PER_RUN", '{"cifar10": true}', "must be JSON"),
        (settings.gpus_per_run, "SUITE_GPUS_PER_RUN", "4", "must be JSON"),
    ],
)
def test_a_wrong_value_is_named_with_what_is_allowed(read, variable, value, allowed):
    with pytest.raises(UserError, match=re.escape(f"{variable}={value}: ")) as raised:
        read({variable: value})
    assert allowed in str(raised.value)


def test_nothing_else_reads_them():
    quoted = re.compile(r"""["']SUITE_\w+["']""")
    readers = [
        path.relative_to(ROOT).as_posix()
        for package in ("methods", "baselines", "workflow")
        for path in (ROOT / package).rglob("*.py")
        if quoted.search(path.read_text(encoding="utf-8"))
    ]
    assert readers == ["methods/core/settings.py"]
