"""What every method promises, asked of one: `python -m methods.contract --cases FILE` (`suite check-method NAME` writes the file).

A case is a small Run of the method, and the Runs that it starts from. The tests of this repository ask the same of its own methods.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from methods.core.errors import UserError
from methods.data.load import Data, load_of
from methods.networks.resnet import Net, build
from methods.training.course import Stopped
from methods.training.loop import train
from methods.training.method import Method
from methods.training.outcome import Outcome
from methods.training.registry import load_method
from methods.training.resume import Resume

CPU = torch.device("cpu")
STILL = 0.2  # share of layers that may stand still for three steps: a dead layer's gradient is zero
STEPS_MOVED, STEPS_CUT = 2, 5  # questions after which a training is asked to stop: within the first epoch, and within the second


class Broken(Exception):
    """A promise that a method does not keep; the message says how."""


@dataclass(frozen=True, eq=False)
class Case:
    """A Run of a method, and its parents, nearest first."""

    label: str
    specs: Sequence[Mapping[str, Any]] = field(repr=False)

    @property
    def spec(self) -> dict[str, Any]:
        return dict(self.specs[0])

    def make(self) -> Method:
        """The method at its start, from parents that are not trained."""
        return make(self.specs)

    @cached_property
    def whole(self) -> tuple[Method, Outcome]:
        """The method after a training that nobody interrupted."""
        method = self.make()
        with tempfile.TemporaryDirectory() as folder:
            return method, train(method, data_of(self.spec), resume=Resume(Path(folder) / "state", "x"), log=_silent)


class After:
    """A request to stop that comes after a number of questions."""

    def __init__(self, questions: int):
        self.left = questions

    def __call__(self) -> bool:
        self.left -= 1
        return self.left < 0


def make(specs: Sequence[Mapping[str, Any]]) -> Method:
    spec, parents = dict(specs[0]), specs[1:]
    parent = {name: tensor.clone() for name, tensor in make(parents).tensors().items()} if parents else None
    return load_method(spec["method"])(spec, data_of(spec), device=CPU, parent=parent)


def data_of(spec: Mapping[str, Any]) -> Data:
    """The images of a Run, loaded once."""
    return _data(json.dumps({key: spec[key] for key in ("dataset", "data")}, sort_keys=True))


@cache
def _data(text: str) -> Data:
    return load_of(json.loads(text), root=None)


def builds(case: Case) -> Net:
    """It builds a network that answers every image"""
    method, data = case.make(), data_of(case.spec)
    method.check_start()
    _require(isinstance(method.net, Net), f"its network is {type(method.net).__name__}, not one of methods.networks.resnet")
    with torch.no_grad():
        logits = method.net.train()(torch.rand(2, *data.shape))  # batch statistics: an untrained +-1 network has no others yet
    _require(logits.shape == (2, data.classes), f"its network answers two images with {tuple(logits.shape)} numbers")
    _require(bool(torch.isfinite(logits).all()), "its network answers with numbers that are not finite")
    return method.net


def moves(case: Case) -> None:
    """Three steps move what is trained, and nothing else"""
    method = case.make()
    trained = {id(parameter) for parameter in method.trainables()}
    parameters = {f"net.{name}": parameter for name, parameter in method.net.named_parameters()}
    made = {f"net.{name}.weight" for name in method.realisation.makers}  # effective weights follow their makers
    for layer, maker in method.realisation.makers.items():
        parameters |= {f"maker.{layer}.{name}": parameter for name, parameter in maker.named_parameters()}
    before = {name: parameter.detach().clone() for name, parameter in parameters.items()}
    statistics = _statistics(method)
    with tempfile.TemporaryDirectory() as folder:
        _interrupted(method, case, Resume(Path(folder) / "state", "x"), STEPS_MOVED)
    moved = {name for name, parameter in parameters.items() if not torch.equal(parameter, before[name])}
    expected = {name for name, parameter in parameters.items() if id(parameter) in trained}
    frozen = sorted(moved - made - expected)
    _require(not frozen, f"moved though no parameter of 'trainables': {', '.join(frozen[:5])}")
    # By layer: a projection may put one factor of a layer back to where it was.
    layers = {name.rpartition(".")[0] for name in expected}
    still = sorted(layers - {name.rpartition(".")[0] for name in moved})
    _require(len(still) <= STILL * len(layers), f"stood still though trained: {', '.join(still[:5])}")
    same = sum(torch.equal(now, then) for now, then in zip(_statistics(method), statistics, strict=True))
    _require(same == 0, f"{same} batch norms did not follow the images")


def resumes(case: Case) -> None:
    """Interrupted and resumed, it ends in the same bits"""
    _, whole = case.whole
    with tempfile.TemporaryDirectory() as folder:
        resume = Resume(Path(folder) / "state", "x")
        _interrupted(case.make(), case, resume, STEPS_CUT)
        resumed = train(case.make(), data_of(case.spec), resume=resume, log=_silent)
    _require(resumed.history == whole.history, "its history differs (state that 'extra_state' does not save?)")
    for kind, one, other in (
        ("network", whole.best["tensors"], resumed.best["tensors"]),
        ("handover", whole.handed_over, resumed.handed_over),
    ):
        differing = [name for name, tensor in one.items() if not torch.equal(tensor, other[name])]
        _require(not differing, f"its {kind} differs in {', '.join(differing[:5])}")


def deploys(case: Case) -> tuple[Method, Net, dict[str, Any]]:
    """The finished network is plain, and has the precision and the weights that the Run declares"""
    method, outcome = case.whole
    tensors: dict[str, Tensor] = outcome.best["tensors"]
    report: dict[str, Any] = outcome.best["report"]
    method.check_declared(tensors, report)
    net = build(**method.net.arguments)  # type: ignore[arg-type]  # they are those that it was built with
    net.load_state_dict(tensors)
    nonzero = sum(int(conv.weight.count_nonzero()) for _, conv in net.convs())
    _require(report["nonzero"] == nonzero, f"it reports {report['nonzero']} weights that are not zero, and has {nonzero}")
    with torch.no_grad():
        logits = net.eval()(torch.rand(2, *data_of(case.spec).shape))
    _require(bool(torch.isfinite(logits).all()), "its network answers with numbers that are not finite")
    return method, net, report


PROMISES: tuple[Callable[[Case], object], ...] = (builds, moves, resumes, deploys)


def words(promise: Callable[[Case], object]) -> str:
    """A promise as a sentence."""
    return (promise.__doc__ or promise.__name__).strip()


def check(case: Case) -> list[tuple[str, str | None]]:
    """(promise, how it is broken; None where it is kept), of all of them. A method may fail in any way that Python can."""
    kept: list[tuple[str, str | None]] = []
    for promise in PROMISES:
        try:
            promise(case)
            kept.append((words(promise), None))
        except (Broken, UserError) as error:
            kept.append((words(promise), str(error)))
        except Exception as error:
            kept.append((words(promise), f"{type(error).__name__}: {error}"))
    return kept


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m methods.contract", description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--cases", required=True, type=Path, help='JSON: a list of {"label": ..., "specs": [the Run, its parent, ...]}')
    options = parser.parse_args(arguments)
    try:
        cases = [Case(case["label"], case["specs"]) for case in json.loads(options.cases.read_text(encoding="utf-8"))]
    except (OSError, ValueError, KeyError, TypeError) as error:
        print(f"error: --cases {options.cases}: not a list of cases ({error})", file=sys.stderr)
        return 2
    broken = 0
    for case in cases:
        for promise, how in check(case):
            print(f"{'pass' if how is None else 'FAIL'}  {case.label}: {promise}{'' if how is None else f': {how}'}", flush=True)
            broken += how is not None
    return int(broken > 0)


def _interrupted(method: Method, case: Case, resume: Resume, questions: int) -> None:
    try:
        train(method, data_of(case.spec), resume=resume, stop=After(questions), log=_silent)
    except Stopped:
        return
    raise Broken("it was over before it could be interrupted")


def _statistics(method: Method) -> list[Tensor]:
    return [norm.running_mean.clone() for norm in method.net.norms() if norm.running_mean is not None]


def _require(kept: bool, otherwise: str) -> None:
    if not kept:
        raise Broken(otherwise)


def _silent(_: str) -> None:
    """Nobody reads the log of these trainings."""


if __name__ == "__main__":
    sys.exit(main())
