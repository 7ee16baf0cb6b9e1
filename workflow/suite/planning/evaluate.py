"""How the network of a Run is evaluated, by its scale."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from methods.core.datasets import DATASETS
from methods.core.run_spec import Spec, canonical, matches, normalise, text_identity
from workflow.suite.planning.config import Scale


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """How the network of a Run is evaluated; the number of shards is no part of its identity."""

    id: str
    spec: Spec
    text: str
    shards: int


def planned(run: Mapping[str, Any], scale: Scale, metrics: set[str]) -> Evaluation:
    """The one evaluation that answers all these metrics: an attack measures clean accuracy as well."""
    settings = dict(scale.evaluate)
    for condition, override in settings.pop("when", []):
        if matches(condition, run):
            settings |= override
    shards = settings.pop("shards")
    if "robust_acc" in metrics:
        chosen = {**settings, "norm": "Linf", "eps": DATASETS[run["dataset"]].eps}
    else:
        chosen = {"attack": "clean", "examples": settings["examples"], "block": settings["block"]}
        shards = 1  # one forward pass over the test set: nothing to share out
    chosen = normalise(chosen)
    text = canonical(chosen)
    return Evaluation(id=text_identity(text), spec=chosen, text=text, shards=shards)
