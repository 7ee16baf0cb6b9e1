"""The list of mutants fits the code: what it would change stands there once, and the tests that it names exist."""

import ast
import re
from collections import Counter

import pytest

from tests.mutants import __main__ as runner
from tests.mutants.catalogue import MUTANTS
from tests.mutants.mutant import ROOT, Mutant


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_mutant_fits_the_code(mutant):
    text = (ROOT / mutant.path).read_text(encoding="utf-8")
    assert text.count(mutant.old) == 1, f"{mutant.path}: {mutant.old!r}"
    changed = mutant.applied(text)
    assert changed != text
    if mutant.path.endswith(".py"):
        assert ast.dump(ast.parse(changed)) != ast.dump(ast.parse(text)), "only words would change"
    assert mutant.tests
    for test in mutant.tests:
        path, *names = test.split("::")
        assert (ROOT / path).exists(), test
        if names:
            assert f"def {names[0].partition('[')[0]}(" in (ROOT / path).read_text(encoding="utf-8"), test


def test_names_are_plain_and_unique():
    assert [name for name, count in Counter(mutant.name for mutant in MUTANTS).items() if count > 1] == []
    assert [mutant.name for mutant in MUTANTS if not re.fullmatch(r"[a-z0-9+-]+", mutant.name)] == []


def test_there_are_enough():
    assert len(MUTANTS) >= 80


@pytest.mark.parametrize(("new", "result"), [("return a - b", "noticed"), ("return b + a", "survived"), ("return a +", "broken")])
def test_the_runner_tells_what_is_noticed(tmp_path, new, result):
    (tmp_path / "sums.py").write_text("def add(a, b):\n    return a + b\n")
    (tmp_path / "test_sums.py").write_text("from sums import add\n\n\ndef test_add():\n    assert add(1, 2) == 3\n")
    mutant = Mutant("sum", "sums.py", "return a + b", new, ("test_sums.py",))
    assert runner.verdict(mutant, tmp_path)[0] == result
    assert "return a + b" in (tmp_path / "sums.py").read_text(), "the copy is as before"


def test_the_text_of_a_mutant_must_stand_there_once():
    with pytest.raises(ValueError, match="has 2 times 'a'; allowed: once"):
        Mutant("twice", "x.py", "a", "b", ("t.py",)).applied("a a")


def test_survivors_are_printed_and_fail_the_run(capsys):
    mutant = Mutant("quiet", "x.py", "a", "b", ("t.py",))
    assert runner.report([(mutant, "survived", ""), (mutant, "noticed", "")]) == 1
    assert "1 of 2 mutants were noticed" in (output := capsys.readouterr().out)
    assert "survived: quiet" in output
    assert runner.report([(mutant, "noticed", "")]) == 0
