"""Claims about accuracy on clean inputs, of robust and of vanilla-trained networks."""

import pandas as pd

from workflow.suite.paper.claims.claim import Claim, Finding, claim
from workflow.suite.paper.claims.evidence import Evidence
from workflow.suite.paper.claims.select import CLEAN, DATASETS, MAIN, VANILLA, beats, ours, rivals, versus, words
from workflow.suite.results.names import OURS

NOTABLE = 10.0  # points, the paper's word


def atmc(e: Evidence, table: str) -> pd.Series:
    """Both full-precision ATMC numbers on CIFAR10."""
    return e.numbers(table=table, group="CIFAR10", method="ATMC", precision="fp").set_index("p")["value"]


@claim(
    "C61",
    "D.2.3",
    "CIFAR10: both variants have the highest clean accuracy of binary networks",
    "both above every other binary row, AT included",
)
def highest_on_cifar10(e: Evidence) -> Finding:
    others = rivals(e, CLEAN, "CIFAR10", "binary")
    mine = [ours(e, CLEAN, "CIFAR10", fast=fast) for fast in (False, True)]
    return min(mine) > others.iloc[0], "; ".join(versus(name, value, others) for name, value in zip(OURS, mine, strict=True))


@claim("C62", "D.2.3", "CIFAR10: clean accuracy is lower than that of full-precision ATMC", "both variants are below both ATMC rows")
def lower_than_atmc(e: Evidence) -> Finding:
    mine = [ours(e, CLEAN, "CIFAR10", fast=fast) for fast in (False, True)]
    found = atmc(e, CLEAN)
    return max(mine) < found.min(), f"ours {mine[0]:.2f}, fast {mine[1]:.2f}; ATMC {', '.join(f'{value:.2f}' for value in found)}"


def ahead_of_atmc(id: str, text: str, *, fast: bool, reading: str) -> Claim:
    @claim(id, "D.2.3", text, f"more than {NOTABLE:g} points above both ATMC rows of the main table", reading=reading)
    def test(e: Evidence) -> Finding:
        lead = ours(e, MAIN, "CIFAR10", fast=fast) - atmc(e, MAIN)
        return bool((lead > NOTABLE).all()), ", ".join(f"{value:+.2f}" for value in lead)

    return test


ahead = ahead_of_atmc(
    "C63", "CIFAR10: under AutoAttack our model is more than 10 points above full-precision ATMC", fast=False, reading="as stated"
)
fast_ahead = ahead_of_atmc("C64", "CIFAR10: so is the fast variant, of which the sentence speaks too", fast=True, reading="strict")


@claim("C65", "D.2.3", "CIFAR100: the fast variant has the best clean accuracy of all networks", "above every row, full precision included")
def fast_best_on_cifar100(e: Evidence) -> Finding:
    found = [item for kind in ("fp", "binary") for item in beats(e, [(CLEAN, "CIFAR100")], kind, fast=True)]
    return all(margin > 0 for margin, _ in found), words(found)


@claim("C66", "D.2.3", "CIFAR100: our PGD model is better than all other binary networks", "above every other method's binary row")
def best_binary_on_cifar100(e: Evidence) -> Finding:
    found = beats(e, [(CLEAN, "CIFAR100")], "binary")
    return found[0][0] > 0, words(found)


@claim(
    "C67",
    "D.2.3",
    "ImageNet100: above all pruned binary models, below some full-precision ones",
    "above every compressed binary row and below at least one full-precision row",
)
def between_on_imagenet100(e: Evidence) -> Finding:
    margin, text = beats(e, [(CLEAN, "ImageNet100")], "binary", section="compressed")[0]
    others = rivals(e, CLEAN, "ImageNet100", "fp")
    higher = int((others > ours(e, CLEAN, "ImageNet100")).sum())
    return margin > 0 and higher > 0, f"{text}; {higher} of {len(others)} full-precision rows are higher"


def best(id: str, where: str, text: str, table: str, section: str | None) -> Claim:
    rows = "every compressed binary row" if section else "every binary row, AT included"

    @claim(id, where, text, f"on each dataset above {rows}")
    def test(e: Evidence) -> Finding:
        found = beats(e, [(table, dataset) for dataset in DATASETS], "binary", section=section)
        return all(margin > 0 for margin, _ in found), words(found)

    return test


clean_best = best("C68", "4.2", "Best clean accuracy of all methods with binary networks", CLEAN, None)
vanilla_pruned = best("C70", "4.2", "Vanilla training: best of the pruned binary networks", VANILLA, "compressed")
vanilla_best = best("C71", "D.2.4", "Vanilla training: best of the binary networks", VANILLA, None)


def dominated(point, points: pd.DataFrame) -> bool:
    """Whether another row is at least as good in both accuracies and better in one."""
    as_good = (points["robust"] >= point.robust) & (points["clean"] >= point.clean)
    return bool((as_good & ((points["robust"] > point.robust) | (points["clean"] > point.clean))).any())


@claim(
    "C69",
    "4.2",
    "A better trade-off between clean and robust accuracy",
    "among binary rows, only ours are not dominated by another row in both accuracies",
    reading="strict",
)
def trade_off(e: Evidence) -> Finding:
    place = ["row", "group"]
    robust = e.numbers(table=MAIN, precision="binary").set_index(place)
    clean = e.numbers(table=CLEAN, precision="binary").set_index(place)["value"]
    both = robust.assign(robust=robust["value"], clean=clean).dropna(subset=["robust", "clean"]).reset_index()
    front = {}
    for dataset, points in both.groupby("group", sort=False):
        front[dataset] = [f"{point.method}/{point.network}" for point in points.itertuples() if not dominated(point, points)]
    holds = all(name.split("/")[0] in OURS for names in front.values() for name in names)
    return holds, "not dominated: " + "; ".join(f"{dataset} {', '.join(names)}" for dataset, names in front.items())
