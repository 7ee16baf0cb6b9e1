"""What a run declares of its network, precision and kept weights, held against the network itself.

A table prints what its rows declare; a method that quietly does something else would fill it with numbers of another network.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from methods.core.errors import UserError

Counts = Sequence[int] | int | None


def check_precision(spec: Mapping[str, Any], weights: Mapping[str, Tensor]) -> None:
    """Binary weights are -1, 0 or +1, in every layer; a network of which all are is not full-precision."""
    declared = spec.get("precision")
    if declared is None:  # a phase that serves both
        return
    odd = {name: w for name, w in weights.items() if not bool(((w == 0) | (w.abs() == 1)).all())}
    actual = "fp" if odd else "binary"
    if actual == declared:
        return
    if odd:
        name, weight = next(iter(odd.items()))
        values = weight[(weight != 0) & (weight.abs() != 1)]
        why = f"layer '{name}' has weights like {values[0].item():.4g}; binary ones are -1, 0 or +1"
    else:
        why = "every convolution weight is -1, 0 or +1"
    raise UserError(
        f"the run declares 'precision: {declared}', but its network is {actual} ({why}); correct the row's 'precision' or 'method'"
    )


def check_counts(spec: Mapping[str, Any], weights: Mapping[str, Tensor], counts: Counts) -> None:
    """Non-zero weights are as many as declared, per layer or in total; none where a method promises no number.

    Binary weights are counted exactly. A real-valued weight can be 0 by chance (a uniform draw is, once in 2^24): at most one in a
    million, and two, may be missing.
    """
    if counts is None:
        return
    real = {name: int(torch.count_nonzero(weight)) for name, weight in weights.items()}
    declared = dict(zip(real, counts, strict=True)) if isinstance(counts, Sequence) else {"the network": counts}
    actual = real if isinstance(counts, Sequence) else {"the network": sum(real.values())}
    slack = 0 if spec.get("precision") == "binary" else 2 + sum(declared.values()) // 1_000_000
    wrong = [name for name in declared if not declared[name] - slack <= actual[name] <= declared[name]]
    if wrong:
        rule = ", ".join(f"'{key}: {spec[key]}'" for key in ("sparsity", "p") if key in spec) or "no sparsity"
        first = f"{declared[wrong[0]]} non-zero weights in {wrong[0]}, which has {actual[wrong[0]]}"
        raise UserError(f"the run declares {rule}, that is {first} ({len(wrong)} of {len(declared)} do not agree); see 'declared_counts'")


def check_bits(spec: Mapping[str, Any], levels: int) -> None:
    """A quantised network is called binary where each stored tensor has two values, and only then."""
    if (spec["precision"] == "binary") != (levels == 2):
        raise UserError(
            f"the run declares 'precision: {spec['precision']}', but 'options.quantiser.bits' gives {levels} values to each stored tensor;"
            " binary is 1 bit, anything else fp"
        )


def check_levels(distinct: Sequence[int], levels: int) -> None:
    """No stored tensor has more non-zero values than its bits can tell apart."""
    if max(distinct) > levels:
        raise UserError(f"the run declares {levels} values per stored tensor ('options.quantiser.bits'), but one has {max(distinct)}")


def check_stored(spec: Mapping[str, Any], stored: int, budget: int) -> None:
    """No more entries are stored than the sparsity allows, whatever a product of factors has."""
    if stored > budget:
        raise UserError(f"the run declares 'sparsity: {spec['sparsity']}', that is {budget} stored entries, but has {stored}")
