"""Security curves: eight radii, falling, the same after an interruption, in Linf and L2."""

from __future__ import annotations

from methods.core import sealed
from methods.evaluate import evaluate, main
from methods.evaluation import curve, runner
from tests.methods.evaluation.nets import images, trained


def command(run, out, *more: str) -> list[str]:
    return ["curve", "--run", str(run), "--out", str(out), "--examples", "40", "--block", "20", "--iterations", "4", *more]


def test_radii_are_eight_around_that_of_the_data():
    assert curve.radii("8/255") == ["2/255", "4/255", "6/255", "8/255", "12/255", "16/255", "24/255", "32/255"]
    assert curve.radii("2/255")[:3] == ["0.5/255", "1/255", "1.5/255"]


def test_a_curve_falls_and_goes_on_after_an_interruption(run, tmp_path, monkeypatch):
    whole, again = tmp_path / "whole.json", tmp_path / "again.json"
    assert main(command(run, whole)) == 0
    value = sealed.read(whole)
    assert len(value["radii"]) == len(value["accuracy"]) == 8
    steps = [value["clean_acc"], *value["accuracy"]]
    assert steps == sorted(steps, reverse=True)
    assert value["accuracy"][-1] < value["accuracy"][0]
    # The smallest radius has nothing below it: its number is that of the evaluation alone.
    spec = {"attack": value["attack"], "eps": "2/255", "examples": 40, "block": 20}
    assert evaluate(trained(), *images(40), spec=spec, trust=False).robust_acc == value["accuracy"][0]

    seen, original = [], runner.attack_block

    def interrupt(*arguments, **options):
        seen.append(1)
        if len(seen) == 7:
            raise KeyboardInterrupt
        return original(*arguments, **options)

    monkeypatch.setattr(runner, "attack_block", interrupt)
    assert main(command(run, again)) == 75
    assert main(command(run, again)) == 0
    assert len(seen) == 16 + 1  # eight radii of two blocks, one of them begun twice
    assert sealed.read(again) == value
    assert sorted(path.name for path in tmp_path.iterdir()) == ["again.json", "whole.json"]


def test_l2_and_own_radii(run, tmp_path, capsys):
    out = tmp_path / "l2.json"
    assert main(command(run, out, "--norm", "L2", "--radii", "0.1", "2")) == 0
    value = sealed.read(out)
    assert (value["norm"], value["radii"]) == ("L2", ["0.1", "2"])
    assert value["accuracy"][1] < value["accuracy"][0]
    assert main(command(run, tmp_path / "no.json", "--radii", "2/255", "1/255")) == 2
    assert "must not fall" in capsys.readouterr().err
    assert main(command(run, tmp_path / "no.json", "--iterations", "0")) == 2
    assert "attack.apgd_iter: 0 is not allowed" in capsys.readouterr().err
    assert not (tmp_path / "no.json").exists()
