"""Which source of a data set is at hand, and how many optimiser steps a Run takes on it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from methods.core.datasets import DATASETS, epoch_steps
from methods.core.run_spec import get


def present(dataset: str, source: str, root: Path) -> bool:
    """Whether a source can be used without fetching anything; looks at names only, so that planning stays cheap."""
    if source == "full":
        return any(True for trace in DATASETS[dataset].traces for _ in root.glob(trace))
    return True  # the sample is shipped with the repository, a stand-in is generated


def choose(sources: str | list[str], dataset: str, root: Path) -> str:
    """The first source that is at hand; the last one where none is (its rule then fetches it or says what is missing)."""
    options = [sources] if isinstance(sources, str) else sources
    return next((source for source in options[:-1] if present(dataset, source, root)), options[-1])


def steps(spec: Mapping[str, Any]) -> int | None:
    """Optimiser steps of a Run (the last partial batch counts), `None` where the number of images is not known."""
    known = DATASETS[spec["dataset"]].train.get(get(spec, "data.source") or "full")
    cap = get(spec, "data.train")
    samples = min(count for count in (known, cap) if count) if known or cap else None
    epochs, batch = get(spec, "train.epochs"), get(spec, "train.batch")
    return None if samples is None or epochs is None or batch is None else epoch_steps(spec["train"], samples) * epochs
