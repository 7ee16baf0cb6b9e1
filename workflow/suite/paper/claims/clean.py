"""Claims about accuracy on clean inputs, of robust and of vanilla-trained networks."""

from workflow.suite.paper.claims.amount import Amount
from workflow.suite.paper.claims.claim import Claim, Finding, claim
from workflow.suite.paper.claims.condition import Condition, above, every, not_below, some
from workflow.suite.paper.claims.evidence import Evidence
from workflow.suite.paper.claims.select import CLEAN, DATASETS, MAIN, VANILLA, ahead, beats, ours, rivals, versus
from workflow.suite.results.names import OURS

NOTABLE = 10.0  # points, the paper's word


def atmc(e: Evidence, table: str) -> list[Amount]:
    """Both full-precision ATMC numbers on CIFAR10."""
    return e.numbers(table=table, group="CIFAR10", method="ATMC", precision="fp")["amount"].to_list()


@claim(
    "C61",
    "D.2.3",
    "CIFAR10: both variants have the highest clean accuracy of binary networks",
    "both above every other binary row, AT included",
)
def highest_on_cifar10(e: Evidence) -> Finding:
    others = rivals(e, CLEAN, "CIFAR10", "binary")
    mine = [ours(e, CLEAN, "CIFAR10", fast=fast) for fast in (False, True)]
    higher = every(above(value, other) for value in mine for other in others)
    return higher, "; ".join(versus(name, value, others) for name, value in zip(OURS, mine, strict=True))


@claim("C62", "D.2.3", "CIFAR10: clean accuracy is lower than that of full-precision ATMC", "both variants are below both ATMC rows")
def lower_than_atmc(e: Evidence) -> Finding:
    mine = [ours(e, CLEAN, "CIFAR10", fast=fast) for fast in (False, True)]
    others = atmc(e, CLEAN)
    lower = every(above(other, value) for value in mine for other in others)
    return lower, f"ours {mine[0]:.2f}, fast {mine[1]:.2f}; ATMC {', '.join(f'{value:.2f}' for value in others)}"


def ahead_of_atmc(id: str, text: str, *, fast: bool, reading: str) -> Claim:
    @claim(id, "D.2.3", text, f"more than {NOTABLE:g} points above both ATMC rows of the main table", reading=reading)
    def test(e: Evidence) -> Finding:
        lead = [ours(e, MAIN, "CIFAR10", fast=fast) - other for other in atmc(e, MAIN)]
        return every(above(value, NOTABLE) for value in lead), ", ".join(f"{value:+.2f}" for value in lead)

    return test


pgd_ahead = ahead_of_atmc(
    "C63", "CIFAR10: under AutoAttack our model is more than 10 points above full-precision ATMC", fast=False, reading="as stated"
)
fast_pgd_ahead = ahead_of_atmc("C64", "CIFAR10: so is the fast variant, of which the sentence speaks too", fast=True, reading="strict")


@claim("C65", "D.2.3", "CIFAR100: the fast variant has the best clean accuracy of all networks", "above every row, full precision included")
def fast_best_on_cifar100(e: Evidence) -> Finding:
    return ahead(item for kind in ("fp", "binary") for item in beats(e, [(CLEAN, "CIFAR100")], kind, fast=True))


@claim("C66", "D.2.3", "CIFAR100: our PGD model is better than all other binary networks", "above every other method's binary row")
def best_binary_on_cifar100(e: Evidence) -> Finding:
    return ahead(beats(e, [(CLEAN, "CIFAR100")], "binary"))


@claim(
    "C67",
    "D.2.3",
    "ImageNet100: above all pruned binary models, below some full-precision ones",
    "above every compressed binary row and below at least one full-precision row",
)
def between_on_imagenet100(e: Evidence) -> Finding:
    best, text = ahead(beats(e, [(CLEAN, "ImageNet100")], "binary", section="compressed"))
    mine, others = ours(e, CLEAN, "ImageNet100"), rivals(e, CLEAN, "ImageNet100", "fp")
    below = some(above(other, mine) for other in others)
    return every([best, below]), f"{text}; {sum(other > mine for other in others)} of {len(others)} full-precision rows are higher"


def best(id: str, where: str, text: str, table: str, section: str | None) -> Claim:
    rows = "every compressed binary row" if section else "every binary row, AT included"

    @claim(id, where, text, f"on each dataset above {rows}")
    def test(e: Evidence) -> Finding:
        return ahead(beats(e, [(table, dataset) for dataset in DATASETS], "binary", section=section))

    return test


clean_best = best("C68", "4.2", "Best clean accuracy of all methods with binary networks", CLEAN, None)
vanilla_pruned = best("C70", "4.2", "Vanilla training: best of the pruned binary networks", VANILLA, "compressed")
vanilla_best = best("C71", "D.2.4", "Vanilla training: best of the binary networks", VANILLA, None)


Point = tuple[str, Amount, Amount]  # method/network, robust and clean accuracy


def dominates(other: Point, point: Point) -> Condition:
    """At least as good in both accuracies and better in one."""
    pairs = list(zip(other[1:], point[1:], strict=True))
    return every([*(not_below(*pair) for pair in pairs), some(above(*pair) for pair in pairs)])


@claim(
    "C69",
    "4.2",
    "A better trade-off between clean and robust accuracy",
    "among binary rows, only ours are not dominated by another row in both accuracies",
    reading="strict",
)
def trade_off(e: Evidence) -> Finding:
    clean = e.numbers(table=CLEAN, precision="binary").set_index(["row", "group"])["amount"].to_dict()
    points: dict[str, list[Point]] = {}
    for line in e.numbers(table=MAIN, precision="binary").itertuples():
        if (line.row, line.group) in clean:
            points.setdefault(line.group, []).append((f"{line.method}/{line.network}", line.amount, clean[line.row, line.group]))
    conditions, texts = [], []
    for dataset, rows in points.items():
        beaten = [some(dominates(other, row) for other in rows if other is not row) for row in rows]
        conditions += [condition for row, condition in zip(rows, beaten, strict=True) if row[0].split("/")[0] not in OURS]
        free = [row[0] for row, condition in zip(rows, beaten, strict=True) if not condition.answer(lambda leaf: leaf.plain)]
        texts.append(f"{dataset} {', '.join(free)}")
    return every(conditions), "not dominated: " + "; ".join(texts)
