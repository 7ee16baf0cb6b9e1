"""The comparison with a plain call of the library."""

from __future__ import annotations

import json

from methods.bench.evaluate import main as bench
from tests.methods.evaluation.nets import one_thread


@one_thread()
def test_bench_compares_answers_and_speeds_also_where_nothing_can_be_spared(tmp_path):
    out = tmp_path / "bench.json"
    assert bench(["--width", "0.0625", "--epochs", "1", "--examples", "30", "--repeats", "1", "--out", str(out)]) == 0
    cases = json.loads(out.read_text())["cases"]
    assert list(cases) == ["any module", "any module, nothing breaks", "network of this suite"]
    for case in cases.values():
        assert case["disagreements"] == 0
        assert case["ratio"]["n"] == 1
        assert case["ratio"]["min"] > 0
    assert cases["any module"]["robust"] < cases["any module, nothing breaks"]["robust"] == 30
