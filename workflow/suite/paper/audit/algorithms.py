"""What the two printed algorithms would do if they were run as they stand."""

from collections.abc import Mapping
from typing import Any

from workflow.suite.paper.claims.evidence import Paper


def algorithms(paper: Paper) -> list[str]:
    """Steps that stand in the wrong place, lack something, or use what nothing gave them."""
    return [line for algorithm in paper.printed["algorithms"] for line in _faults(algorithm)]


def _faults(algorithm: Mapping[str, Any]) -> list[str]:
    name, loops, lines = algorithm["name"], algorithm["loops"], []
    if algorithm["budget"] == "l_inf" and algorithm["attack"]["direction"] == "gradient":
        lines.append(f"{name} adds the raw gradient to the image; an l_inf attack (PGD, FGSM) adds its sign")
    if "batches" not in algorithm["update"]["inside"]:
        lines.append(f"{name} updates the scores after the loop over mini-batches: once in all, on its last batch")
    for loop, bound in loops.items():
        if bound not in algorithm["inputs"]:
            lines.append(f"The loop over {loop} of {name} runs to the number of {bound}, which is no input of it")
    stored = algorithm.get("stored")
    if stored and stored["set"] == "before the attack":
        lines.append(f"{name} stores a perturbation that was set before the attack, so none is ever refreshed")
    if stored and stored.get("when"):
        lines.append(f"{name} stores a perturbation that is set only where {stored['when']}, so the first is never stored")
    return lines
