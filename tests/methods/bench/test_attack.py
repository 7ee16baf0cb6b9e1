"""The bench of a whole AutoAttack tells where the two sides answer differently, and how near to the border that is."""

import json

import pytest
import torch
from torch import nn

from methods.bench import attack


def test_margins_are_those_to_the_largest_other_logit():
    logits = torch.tensor([[1.0, 3.0, 2.5], [4.0, 1.0, 0.0], [1.0, 2.0, 2.0]])
    assert attack.margins(logits, torch.tensor([1, 2, 1])).tolist() == [0.5, -4.0, 0.0]


def test_the_least_margin_near_each_image_is_seen():
    """Two images 0.5 apart; the network's logits are (mean, 0): margins for label 0 are the means."""
    x = torch.stack([torch.full((1, 2, 2), value) for value in (0.2, 0.7)])
    net = nn.Sequential(nn.Flatten(), nn.Linear(4, 2, bias=False))
    net[1].weight.data.copy_(torch.tensor([[0.25] * 4, [0.0] * 4]))
    with attack.watched(net, x, torch.tensor([0, 0]), radius=0.1) as least:
        net(torch.cat([x + 0.05, x - 0.1, x + 0.15]))  # the last two are nobody's: too far away
    net(x - 0.1)
    assert least.margin.tolist() == pytest.approx([0.1, 0.6])


def result(margins: list[float], examples: int = 20) -> dict:
    return {"examples": examples, "clean_margin": 2.0, "differing": [{"margin": margin} for margin in margins]}


@pytest.mark.parametrize(("margins", "accepted"), [([], True), ([-0.1, 0.1], True), ([-0.3], False), ([-0.01, -0.01, -0.01], False)])
def test_only_few_and_borderline_answers_may_differ(margins, accepted):
    assert attack.borderline(result(margins)) is accepted


def test_both_sides_answer_alike_and_the_file_says_so(tmp_path, capsys):
    out = tmp_path / "attack.json"
    options = ["--arch", "rn18", "--width", "0.125", "--examples", "4", "--eps", "1/2550", "--attack", "quick", "--out", str(out)]
    assert attack.main(options) == 0
    report = json.loads(out.read_text())["result"]
    assert report["robust"]["plain"] == report["robust"]["sparse"]
    assert "0 answers differ" in capsys.readouterr().out


def test_an_answer_that_differs_is_told(monkeypatch, tmp_path, capsys):
    """A sparse side that finds one image broken, to a margin that is no border, ends in exit code 1."""
    monkeypatch.setattr(attack, "plain", lambda net, x, y, spec: (torch.zeros(len(x), dtype=bool), torch.ones(len(x))))
    broken, least = torch.tensor([False, True, False, False]), torch.tensor([1.0, -5.0, 1.0, 1.0])
    monkeypatch.setattr(attack, "sparse", lambda net, x, y, spec: (broken, least))
    options = ["--arch", "rn18", "--width", "0.125", "--examples", "4", "--attack", "quick", "--out", str(tmp_path / "attack.json")]
    assert attack.main(options) == 1
    assert "image 1: broken on the sparse side only, to a margin of -5.0e+00" in capsys.readouterr().out
