"""Claims about where a trained mask keeps its weights, against random pruning of the same layer."""

import numpy as np

from workflow.suite.paper import theory
from workflow.suite.paper.claims.claim import Finding, claim
from workflow.suite.paper.claims.evidence import Evidence
from workflow.suite.results import masks
from workflow.suite.results.masks import Pair, per_input, per_kernel, per_output

FORTY = (0.35, 0.45)  # what we accept as "40 %"
MANY = 50 / 256**2  # share of kernels that we accept as "many": 50 of a 256 x 256 layer
SIDES = {"input": per_input, "output": per_output}


def chance(mask: np.ndarray, at_least: int = 0, at_most: int = 9, channels: int | None = None) -> float:
    """Expected number of kernels (or of channels, given how many there are) that keep so many weights under random pruning; exact."""
    groups = channels or mask.size // 9
    share = [
        theory.kernel_share(k, weights=mask.size, kept=int(mask.sum()), area=mask.size // groups) for k in range(at_least, at_most + 1)
    ]
    return groups * sum(share)


def forty(shares: dict[str, float]) -> Finding:
    holds = all(FORTY[0] <= share <= FORTY[1] for share in shares.values())
    return holds, ", ".join(f"{100 * share:.1f} % of {name} empty" for name, share in shares.items())


@claim(
    "C73",
    "4.3",
    "Some 40 % of the channels of a layer are pruned entirely",
    "35 to 45 % of its input channels, which its figure highlights, keep nothing",
)
def forty_percent(e: Evidence) -> Finding:
    mask = e.masks("robust").first
    outputs = float((per_output(mask) == 0).mean())
    holds, text = forty({"input channels": float((per_input(mask) == 0).mean())})
    return holds, f"{text}; {100 * outputs:.1f} % of output channels"


@claim(
    "C74", "4.3", "Kept weights concentrate on few channels", "the fullest fifth of the input or of the output channels hold more than half"
)
def concentrated(e: Evidence) -> Finding:
    mask, held = e.masks("robust").first, {}
    for name, count in SIDES.items():
        counts = masks.falling(count(mask))
        held[name] = counts[: max(1, len(counts) // 5)].sum() / max(1, counts.sum())
    return max(held.values()) > 0.5, ", ".join(f"{name} {100 * share:.1f} %" for name, share in held.items())


@claim(
    "C75",
    "4.3",
    "Some 40 % of the channels between two layers are pruned",
    "35 to 45 % of layer 1's outputs and of layer 2's inputs are empty",
)
def forty_between(e: Evidence) -> Finding:
    pair = e.masks("robust")
    outputs, inputs = per_output(pair.first) == 0, per_input(pair.second) == 0
    return forty({"layer 1's outputs": float(outputs.mean()), "layer 2's inputs": float(inputs.mean())})


@claim(
    "C76",
    "4.3",
    "Random pruning spreads weights more evenly over channels",
    f"in all four panels the fullest channel holds more, and the emptiest less, than in the average of {masks.SIMULATIONS} random prunings",
)
def less_even_than_random(e: Evidence) -> Finding:
    holds, counted = True, []
    for layer, mask in enumerate(layers(e.masks("robust")), 1):
        reference = masks.random_reference(mask.shape, int(mask.sum()))
        for name, average in (("input", reference.inputs[0]), ("output", reference.outputs[0])):
            counts = masks.falling(SIDES[name](mask))
            holds = holds and bool(counts[0] > average[0] and counts[-1] < average[-1])
            counted.append(f"layer {layer} {name} {counts[0]}..{counts[-1]} vs {average[0]:.1f}..{average[-1]:.1f}")
    return holds, "; ".join(counted)


@claim("C78", "4.3", "A few kernels keep all nine weights", "at least one does")
def whole_kernels(e: Evidence) -> Finding:
    count = int(per_kernel(e.masks("robust").first)[9])
    return count >= 1, f"{count} kernels"


@claim(
    "C80", "4.3", "Many kernels keep more than three weights", "more than 50 in 65536, and more than ten times what random pruning gives"
)
def full_kernels(e: Evidence) -> Finding:
    mask = e.masks("robust").first
    kernels, expected = per_kernel(mask), chance(mask, at_least=4)
    count = int(kernels[4:].sum())
    return count > max(MANY * kernels.sum(), 10 * expected), f"{count} of {kernels.sum()}, {expected:.3g} by chance"


def layers(pair: Pair) -> tuple[np.ndarray, np.ndarray]:
    return pair.first, pair.second


def aligned(pair: Pair) -> Finding:
    """Overlap of empty outputs with empty inputs of the next layer, against independent sets of the same sizes."""
    overlap = masks.overlap(pair)
    return (
        overlap.both > 0 and overlap.jaccard >= 2 * overlap.by_chance,
        f"overlap {overlap.jaccard:.2f}, {overlap.by_chance:.2f} by chance",
    )


def clustered(pair: Pair) -> Finding:
    """Empty channels and empty kernels, against their expected number under random pruning."""
    holds, counted = True, []
    for layer, mask in enumerate(layers(pair), 1):
        channels = sum(int((count(mask) == 0).sum()) for count in SIDES.values())
        expected = sum(chance(mask, at_most=0, channels=mask.shape[axis]) for axis in (0, 1))
        kernels, by_chance = int(per_kernel(mask)[0]), chance(mask, at_most=0)
        holds = holds and channels > expected and kernels > by_chance
        counted.append(f"layer {layer}: {channels} channels vs {expected:.2g}, {kernels} kernels vs {by_chance:.0f}")
    return holds, "; ".join(counted)


@claim(
    "C81",
    "4.3, D.2.5",
    "Pruned outputs of layer 1 meet pruned inputs of layer 2",
    "their overlap is at least twice that of independent sets",
)
def aligned_channels(e: Evidence) -> Finding:
    return aligned(e.masks("robust"))


@claim(
    "C82",
    "1",
    "Whole channels and whole kernels are pruned",
    "empty channels and empty kernels are more frequent than under random pruning",
)
def whole_channels(e: Evidence) -> Finding:
    return clustered(e.masks("robust"))


@claim("C83", "D.2.5", "Masks after vanilla training have the same structure", "C81 and C82 hold for the vanilla-trained network")
def also_vanilla(e: Evidence) -> Finding:
    findings = [aligned(e.masks("vanilla")), clustered(e.masks("vanilla"))]
    return all(holds for holds, _ in findings), "; ".join(text for _, text in findings)
