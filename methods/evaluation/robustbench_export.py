"""A result as an entry of RobustBench's model_info (Croce et al., NeurIPS 2021 Datasets and Benchmarks; arXiv:2010.09670). Torch-free.

RobustBench lists standard AutoAttack on all of a data set's test images; only such a result is exported. Warnings of the library stay with
the number, in the footnote.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from methods.core import eval_spec
from methods.core.datasets import DATASETS
from methods.core.errors import UserError

TEST_IMAGES = {name: DATASETS[name].test["full"] for name in ("cifar10", "cifar100")}  # those that RobustBench has


def model_info(
    result: Mapping[str, Any],
    *,
    dataset: str,
    name: str,
    architecture: str,
    authors: str = "",
    venue: str = "",
    link: str = "",
    footnote: str = "",
    reported: float | None = None,
    additional_data: bool = False,
) -> dict[str, Any]:
    """The entry for a merged result (`Result.to_json()`); accuracies become percent with two decimals, as strings: RobustBench's form."""
    missing = [key for key in ("spec", "clean_acc", "robust_acc", "n") if key not in result]
    if missing:
        raise UserError(f"not a merged result: the key '{missing[0]}' is missing; merge the shards first")
    if dataset not in TEST_IMAGES:
        raise UserError(f"'dataset: {dataset}' has no RobustBench leaderboard; allowed: {', '.join(TEST_IMAGES)}")
    spec = eval_spec.parse(result["spec"])
    if not isinstance(spec.attack, eval_spec.Standard):
        raise UserError(f"'attack: {result['spec']['attack']}': RobustBench lists 'attack: \"standard\"' only; evaluate with that")
    if result["n"] != TEST_IMAGES[dataset]:
        raise UserError(
            f"'n: {result['n']}': RobustBench lists results on all {TEST_IMAGES[dataset]} test images of {dataset};"
            " evaluate with 'examples: \"all\"'"
        )
    entry = {
        "link": link,
        "name": name,
        "authors": authors,
        "additional_data": additional_data,
        "number_forward_passes": 1,
        "dataset": dataset,
        "venue": venue,
        "architecture": architecture,
        "eps": str(spec.eps),
        "clean_acc": _percent(result["clean_acc"]),
        "reported": "" if reported is None else f"{reported:.2f}",
        "autoattack_acc": _percent(result["robust_acc"]),
    }
    kinds = sorted({w["kind"] for w in result.get("warnings", ())})
    notes = [footnote, f"AutoAttack's own checks warned: {', '.join(kinds)}." if kinds else ""]
    note = " ".join(filter(None, notes))
    return entry | ({"footnote": note} if note else {})


def _percent(fraction: float) -> str:
    return f"{100 * fraction:.2f}"
