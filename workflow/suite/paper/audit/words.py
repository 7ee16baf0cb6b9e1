"""Contradictions between what captions and formulas say and what rows and arithmetic give; and what holds."""

from math import exp

from methods.core.allocation import exact_shares
from workflow.suite.paper import resnet, theory
from workflow.suite.paper.audit.numbers import equal_numbers
from workflow.suite.paper.claims import catalogue, printing
from workflow.suite.paper.claims.evidence import Paper
from workflow.suite.paper.claims.select import CLEAN, MAIN, VANILLA
from workflow.suite.paper.closed_tables import small


def captions(paper: Paper) -> list[str]:
    """Captions against rows."""
    lines = []
    for said in paper.printed["captions"]:
        table = paper.tables[said["table"]]
        wrong = [row for row in table.rows if row.section == "compressed" and row.run.get("sparsity") is None]
        if said["marks_among"] == "pruned" and wrong:
            rows = ", ".join(f"`{row.id}`" for row in wrong)
            lines.append(f"`{table.name}` marks the best among the pruned models; below its line stands a row that is not pruned: {rows}")
        label = said.get("explains_row")
        if label and not any(label in row.labels for row in table.rows):
            near = ", ".join(dict.fromkeys(text for row in table.rows for text in row.labels if label in text))
            lines.append(f"`{table.name}` explains a row '{label}' that it does not have; it has {near}")
    return lines + _small_row(paper)


def _small_row(paper: Paper) -> list[str]:
    place = paper.printed["small_row"]
    mine = paper.numbers(table=place["table"], row=place["row"]).set_index("column")["value"]
    said, other = (paper.numbers(table=place["complete"], row=place[kind]).set_index("column")["value"] for kind in ("said", "other"))
    mine = mine.reindex(said.index)
    if (mine == said).all():
        return []
    weaker = ", ".join(f"{value:.2f}" for value in said - mine)
    return [
        f"Row '{place['row']}' of `{place['table']}` is said to be `{place['said']}` of `{place['complete']}`:"
        f" {int((mine == said).sum())} of {len(mine)} common cells are equal, {int((mine == other).sum())} equal `{place['other']}`;"
        f" what is said would be better by {weaker}"
    ]


def formulas(paper: Paper) -> list[str]:
    """Formulas against arithmetic, beyond those that are claims."""
    facts, network, headline = paper.printed["random_pruning"], paper.printed["network"], paper.printed["headline"]
    lines = []
    chance = exp(facts["empty_kernel_exponent_sign"] * 9 * (1 - facts["sparsity"]))
    if chance > 1:
        right = theory.kernel_share_estimate(0, weights=9, sparsity=facts["sparsity"])
        lines.append(f"The printed probability of an empty kernel is {chance:.4f}, above 1; with the sign turned it is {right:.4f}")
    layers = resnet.layers(network)
    sizes = [layer.weights for layer in layers]
    for layer, kept in zip(layers, exact_shares(sizes, capped=False, **headline), strict=True):
        if kept > layer.weights:
            setting = f"r = {headline['sparsity']}, p = {headline['p']}"
            lines.append(f"Without a cap the pruning equation asks {layer.name} for {kept:.0f} of its {layer.weights} weights at {setting}")
    for net in paper.printed["small_networks"]:
        capped, free = (
            [round(width) for width in resnet.widths(network, sparsity=headline["sparsity"], p=net["p"], capped=cap)]
            for cap in (True, False)
        )
        if capped == net["widths"][1:] != free:
            lines.append(f"The widths of {net['label']} come out with that cap only: {capped}, not {free}")
    lines += _last_layer(paper)
    budget = (1 - headline["sparsity"]) * sum(sizes)
    if not round(budget, 6).is_integer():
        lines.append(f"The budget (1 - r) n = {budget:.2f} is no whole number of weights, as an equality asks")
    kinds = {network["name"]: _counting(network, network["parameters"])}
    kinds |= {net["label"]: _counting(small(network, net["widths"]), net["parameters"]) for net in paper.printed["small_networks"]}
    if len(set(kinds.values())) > 1:
        lines.append("Parameters are counted in two ways: " + "; ".join(f"{name} {kind} batch norm's" for name, kind in kinds.items()))
    return lines


def _last_layer(paper: Paper) -> list[str]:
    """The factor of the last layer, and the gradient below a last batch norm, held against finite differences."""
    facts, rate, lines = paper.printed["last_layer"], paper.printed["headline"]["sparsity"], []
    factor = theory.logit_factor(facts["neurons"], rate)
    if round(factor) != facts["scale"]:
        lines.append(
            f"The logits are said to grow {facts['scale']} times for {facts['neurons']} neurons; the formula of the main text gives"
            f" {factor:.2f} at r = {rate}, and {theory.logit_factor(facts['neurons'], 0.0):.2f} without pruning"
        )
    errors = {index: theory.normalised_gradient_error(index) for index in ("label", "logit")}
    index = paper.printed["normalised_gradient"]["softmax_of"]
    if errors[index] > 1e-6:
        lines.append(
            f"The printed gradient below a last batch norm has the softmax of the {index} where that of the logit itself belongs: it misses"
            f" finite differences by up to {errors[index]:.2f}, with the right index by {errors['logit']:.0e}"
        )
    return lines


def _counting(network: dict, printed: int) -> str:
    kinds = {"with": resnet.parameters(network, affine=True), "without": resnet.parameters(network, affine=False)}
    return next((kind for kind, count in kinds.items() if count == printed), "unlike either count,")


def false_claims(paper: Paper) -> list[str]:
    """Sentences that the tables or arithmetic falsify: the claims that come out FALSE without a threshold of ours."""
    return _false(paper, vague=False)


def vague_claims(paper: Paper) -> list[str]:
    """Sentences with a vague word that come out FALSE at our threshold for it."""
    return _false(paper, vague=True)


def _false(paper: Paper, *, vague: bool) -> list[str]:
    judged = catalogue.judge(paper)
    return [
        f"{item.id} ({item.where}, {item.reading}) {item.text}. Rule: {item.rule}. Numbers: {judged[item.id].numbers}"
        for item in catalogue.claims()
        if judged[item.id].verdict == "FALSE" and (item.reading == "vague") == vague
    ]


def checked(paper: Paper) -> list[str]:
    """What was checked and how often it holds."""
    pairs, equal = equal_numbers(paper)
    lines = [f"Same setting in two tables: {equal} of {pairs} pairs of numbers are equal"]
    place = ["row", "column"]
    robust, clean, vanilla = (paper.numbers(table=table).set_index(place)["value"] for table in (MAIN, CLEAN, VANILLA))
    for low, high, text in ((robust, clean, "robust accuracy is not above clean"), (clean, vanilla, "clean is not above vanilla-trained")):
        common = low.index.intersection(high.index)
        lines.append(f"{text[0].upper()}{text[1:]}: {int((low[common] <= high[common]).sum())} of {len(common)} cells")
    imagenet = paper.numbers(dataset="imagenet100")["value"]
    even = int(((imagenet * 50).round(6) % 1 == 0).sum())
    lines.append(f"ImageNet100 accuracies are multiples of 0.02, as 5000 images give: {even} of {len(imagenet)}")
    counts = {name: printing.mark_counts(paper, name) for name in paper.tables}
    right, wrong = (sum(count[i] for count in counts.values()) for i in (0, 1))
    tables = ", ".join(f"{count[0]} in `{name}`" for name, count in counts.items())
    return [
        *lines,
        f"Bold and underlined numbers are the best of their columns: {right} marks are right ({tables}), {wrong} wrong or missing",
    ]
