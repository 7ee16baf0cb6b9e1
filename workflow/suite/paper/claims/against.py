"""Claims about our robust accuracy against the baselines."""

from workflow.suite.paper.claims.claim import Claim, Finding, claim
from workflow.suite.paper.claims.condition import MoreThan, above, every, some
from workflow.suite.paper.claims.evidence import Evidence
from workflow.suite.paper.claims.select import (
    COMPARABLE,
    COMPLETE,
    DATASETS,
    MAIN,
    OTHER_NETS,
    SETTINGS,
    ahead,
    beats,
    ours,
    rivals,
    within,
    words,
)

ROWS = {"compressed": "the compressed binary rows", None: "all binary rows, unpruned adversarial training included"}


def best_binary(
    id: str, where: str, text: str, places: list[tuple[str, str]], *, section: str | None, fast: bool = False, reading: str = "as stated"
) -> Claim:
    """We are above every rival with binary weights in each place."""
    name = "Ours(fast)" if fast else "Ours"

    @claim(id, where, text, f"in each column, {name} is above {ROWS[section]}", reading=reading)
    def test(e: Evidence) -> Finding:
        return ahead(beats(e, places, "binary", section=section, fast=fast))

    return test


ON_MAIN = [(MAIN, dataset) for dataset in DATASETS]
ON_NETS = [(OTHER_NETS, net) for net in ("RN18", "RN50")]
best_pruned = best_binary("C25", "4.2", "Our method is the best pruned binary one on each dataset", ON_MAIN, section="compressed")
best_of_all = best_binary("C26", "4.2", "Our method is better than all binary baselines", ON_MAIN, section=None, reading="strict")
fast_pruned = best_binary("C27", "4.2", "The fast variant is the best pruned binary one too", ON_MAIN, section="compressed", fast=True)
fast_of_all = best_binary(
    "C28", "4.2", "The fast variant is better than all binary baselines", ON_MAIN, section=None, fast=True, reading="strict"
)
nets_pruned = best_binary("C48", "4.2", "RN18 and RN50: best compressed binary network", ON_NETS, section="compressed")
nets_of_all = best_binary("C49", "abstract, 4.2", "RN18 and RN50: best binary network", ON_NETS, section=None, reading="strict")
nets_fast = best_binary(
    "C50",
    "4.2",
    "RN18 and RN50: the fast variant is the best compressed one",
    ON_NETS,
    section="compressed",
    fast=True,
    reading="cross-check",
)
nets_fast_all = best_binary(
    "C51", "4.2", "RN18 and RN50: the fast variant is the best of all", ON_NETS, section=None, fast=True, reading="cross-check"
)
always = best_binary("C52", "abstract", "Always ahead of robust binary networks", list(SETTINGS), section="compressed")
complete = best_binary("C47", "4.2", "The complete table confirms the main one", [(COMPLETE, name) for name in DATASETS[:2]], section=None)


@claim(
    "C29",
    "4.2",
    "On CIFAR10 and CIFAR100 comparable with full-precision methods",
    f"at most {COMPARABLE:g} points below the best compressed full-precision row",
    reading="vague",
)
def comparable_with_fp(e: Evidence) -> Finding:
    places = beats(e, ON_MAIN[:2], "fp", section="compressed")
    near, limit = within(-margin for margins, _ in places for margin in margins)
    return near, f"{words(places)}; {limit}"


@claim(
    "C30",
    "4.2",
    "Comparable with adversarial training of the unpruned network",
    f"on CIFAR10 and CIFAR100 at most {COMPARABLE:g} points below the better full-precision AT row",
    reading="vague",
)
def comparable_with_unpruned(e: Evidence) -> Finding:
    places = beats(e, ON_MAIN[:2], "fp", section="reference")
    near, limit = within(-margin for margins, _ in places for margin in margins)
    return near, f"{words(places)}; {limit}"


def most_fp(id: str, text: str, rule: str, section: str | None, reading: str) -> Claim:
    @claim(id, "4.2", text, rule, reading=reading)
    def test(e: Evidence) -> Finding:
        mine, others = ours(e, MAIN, "ImageNet100"), rivals(e, MAIN, "ImageNet100", "fp", section=section)
        lower = sum(other < mine for other in others)
        return MoreThan(len(others) / 2, tuple(above(mine, other) for other in others)), f"{lower} of {len(others)} are lower"

    return test


most_compressed = most_fp(
    "C31", "On ImageNet100 better than most full-precision networks", "more than half of the compressed rows", "compressed", "as stated"
)
most_of_all = most_fp(
    "C32",
    "On ImageNet100 better than most full-precision networks, unpruned ones included",
    "more than half of all rows of the column",
    None,
    "strict",
)


@claim(
    "C33",
    "4.2",
    "On ImageNet100 comparable with unpruned binary AT and worse than unpruned full-precision AT",
    f"within {COMPARABLE:g} points of both binary AT rows, and below both full-precision ones",
    reading="vague",
)
def between_the_two(e: Evidence) -> Finding:
    mine = ours(e, MAIN, "ImageNet100")
    binary, fp = (rivals(e, MAIN, "ImageNet100", kind, section="reference") for kind in ("binary", "fp"))
    near, limit = within(abs(other - mine) for other in binary)
    texts = [", ".join(f"{value:.2f}" for value in values) for values in (binary, fp)]
    lower = [above(other, mine) for other in fp]
    return every([near, *lower]), f"{mine:.2f} vs binary {texts[0]}; full precision {texts[1]}; {limit}"


@claim("C34", "4.2", "BCS is trivial on ImageNet100, below 3 %", "its full-precision cell is below 3")
def bcs_is_trivial(e: Evidence) -> Finding:
    value = e.number(table=MAIN, group="ImageNet100", method="BCS", precision="fp")
    return above(3.0, value), f"{value:.2f}"


@claim(
    "C53",
    "abstract",
    "Better than full precision on some datasets",
    "in at least one of five settings above the best compressed full-precision row",
    reading="strict",
)
def beats_compressed_fp(e: Evidence) -> Finding:
    places = beats(e, SETTINGS, "fp", section="compressed")
    return some(every(map(above, margins)) for margins, _ in places), words(places)


@claim(
    "C54",
    "abstract",
    "Better than full precision on some datasets: than unpruned AT",
    "in at least one of five settings above both unpruned AT rows",
    reading="lenient",
)
def beats_unpruned_fp(e: Evidence) -> Finding:
    places = beats(e, SETTINGS, "fp", section="reference")
    return some(every(map(above, margins)) for margins, _ in places), words(places)


@claim(
    "C55",
    "1",
    "On par with or better than full-precision FlyingBird, BCS and HYDRA",
    f"on CIFAR10 at most {COMPARABLE:g} points below any of the three",
    reading="vague",
)
def on_par(e: Evidence) -> Finding:
    mine = ours(e, MAIN, "CIFAR10")
    others = {name: e.number(table=MAIN, group="CIFAR10", method=name, precision="fp") for name in ("FlyingBird", "BCS", "HYDRA")}
    near, limit = within(value - mine for value in others.values())
    return near, f"{mine:.2f} vs " + ", ".join(f"{name} {value:.2f}" for name, value in others.items()) + f"; {limit}"


@claim(
    "C56",
    "2, 5",
    "Better than existing methods for compressed robust models",
    "in all five settings above every compressed row, full precision included",
    reading="strict",
)
def beats_everything(e: Evidence) -> Finding:
    places = beats(e, SETTINGS, "fp", section="compressed") + beats(e, SETTINGS, "binary", section="compressed")
    behind = [(margins, text) for margins, text in places if margins[0] <= 0]
    return ahead(places)[0], words(behind) or "ahead everywhere"


@claim("C57", "D.1", "Small RN34-p0.1 is better than the other small network", "it is above Small RN34-p1.0 in each of 8 pairs")
def small_p01_is_better(e: Evidence) -> Finding:
    place = ["method", "column"]
    one, other = (
        e.numbers(table=COMPLETE, arch=arch).set_index(place)["amount"].to_dict() for arch in ("small_rn34_p01", "small_rn34_p10")
    )
    lead = [value - other[key] for key, value in one.items() if key in other]
    if not lead:
        raise e.lacks("number", "no pair of small networks")
    return every(map(above, lead)), f"{sum(value > 0 for value in lead)} of {len(lead)}, smallest lead {min(lead):+.2f}"
