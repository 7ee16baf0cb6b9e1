"""Claims about closed forms: random pruning, FLOPs, sizes. They are the same whatever was measured."""

from math import floor

from methods.core.allocation import exact_shares
from workflow.suite.paper import resnet, theory
from workflow.suite.paper.claims.claim import Finding, claim
from workflow.suite.paper.claims.evidence import Evidence
from workflow.suite.planning.config import ROOT
from workflow.suite.planning.recipes import load_all

MUCH = 10.0  # what we accept as "much larger than 1"
CHEAPER = 3.0  # and as "much cheaper"
ABOUT = 1.0  # points of a quoted percentage


def layer(e: Evidence) -> dict[str, int]:
    """The layer of the paper's example: its weights and how many are kept."""
    facts = e.printed["random_pruning"]
    weights = facts["channels"] ** 2 * facts["kernel"] ** 2
    return {"weights": weights, "kept": floor((1 - facts["sparsity"]) * weights)}


def flops(e: Evidence) -> dict[str, float]:
    """Percent of FLOPs that binary weights save in the whole network at the headline setting."""
    headline, layers = e.printed["headline"], resnet.layers(e.printed["network"])
    kept = exact_shares([item.weights for item in layers], **headline)
    blocks = [
        theory.Block(
            kernel=item.kernel,
            size=item.size,
            channels_in=item.channels_in,
            channels_out=item.channels_out,
            sparsity=1 - m / item.weights,
        )
        for item, m in zip(layers[:-1], kept, strict=False)  # the classifier is no convolution-norm-ReLU block
    ]

    def cost(binary: bool) -> dict[str, float]:
        forward, evaluation = (sum(b.forward(binary=binary, training=training) for b in blocks) for training in (True, False))
        backward = sum(b.backward(binary=binary) for b in blocks)
        return {"forward": forward, "backward": backward, "training": forward + backward, "evaluation": evaluation}

    full, binary = cost(False), cost(True)
    return {name: 100 * (1 - binary[name] / full[name]) for name in full}


def block(e: Evidence, **changed: float) -> theory.Block:
    return theory.Block(**{**e.printed["complexity"]["block"], **changed})


@claim(
    "C77", "4.3, A.4", "Random pruning hardly ever empties a channel", "expected number in a 256 x 256 layer below 0.01, exactly computed"
)
def no_empty_channel(e: Evidence) -> Finding:
    channels, sizes = e.printed["random_pruning"]["channels"], layer(e)
    expected = channels * theory.empty_channel_share(channel_weights=sizes["weights"] // channels, **sizes)
    return expected < 0.01, f"{expected:.2g}"


@claim("C79", "4.3", "Random pruning leaves no kernel with more than three weights", "expected number in a 256 x 256 layer below 1")
def no_full_kernel(e: Evidence) -> Finding:
    sizes = layer(e)
    expected = sizes["weights"] / 9 * sum(theory.kernel_share(k, **sizes) for k in range(4, 10))
    return expected < 1, f"{expected:.3f}"


@claim(
    "C84",
    "A.4",
    "The chance of k kept weights in a kernel falls quickly with k",
    "the formula gives the printed expected numbers for k = 3 and 4, and less than one kernel from k = 4 on",
)
def falls_quickly(e: Evidence) -> Finding:
    facts, sizes = e.printed["random_pruning"], layer(e)
    estimate = {
        k: sizes["weights"] / 9 * theory.kernel_share_estimate(k, weights=sizes["weights"], sparsity=facts["sparsity"])
        for k in range(1, 10)
    }
    exact = {k: sizes["weights"] / 9 * theory.kernel_share(k, **sizes) for k in facts["expected_kernels"]}
    printed = all(round(estimate[k], 2) == value for k, value in facts["expected_kernels"].items())
    falling = all(estimate[k + 1] < estimate[k] / 2 for k in range(1, 9)) and sum(estimate[k] for k in range(4, 10)) < 1
    return printed and falling, ", ".join(f"k={k} {estimate[k]:.2f} (exactly {exact[k]:.3f})" for k in exact)


@claim(
    "C85",
    "A.4",
    "The number of weights kept in a channel concentrates around kept / channels",
    "the likeliest number is within 1 of it, and less than one channel of the layer is expected below a fifth or above 2.2 times of it",
)
def concentrates(e: Evidence) -> Finding:
    channels, sizes = e.printed["random_pruning"]["channels"], layer(e)
    mean, area = sizes["kept"] / channels, sizes["weights"] // channels
    chance = [theory.kernel_share(k, area=area, **sizes) for k in range(4 * round(mean))]
    likeliest = max(range(len(chance)), key=chance.__getitem__)
    outside = channels * (1 - sum(chance[k] for k in range(len(chance)) if mean / 5 <= k <= 2.2 * mean))
    return abs(likeliest - mean) <= 1 and outside < 1, f"mean {mean:.2f}, likeliest {likeliest}, {outside:.2g} channels outside"


@claim(
    "C86",
    "3.3",
    "Binary weights save about 45 % of RN34's FLOPs in training and 32 % in evaluation",
    f"the complexity table summed over RN34 gives both within {ABOUT:g} point",
)
def network_savings(e: Evidence) -> Finding:
    shares = flops(e)
    holds = all(abs(shares[phase] - said) <= ABOUT for phase, said in e.printed["complexity"]["network"].items())
    return holds, ", ".join(f"{name} {value:.2f} %" for name, value in shares.items())


@claim("C87", "A.2", "A binary block saves 34, 29 and 43 % of forward, backward and inference", "one minus the block's ratios, rounded")
def block_savings(e: Evidence) -> Finding:
    savings = {name: 100 * (1 - ratio) for name, ratio in block(e).ratios().items()}
    holds = all(round(savings[name]) == said for name, said in e.printed["complexity"]["savings"].items())
    return holds, ", ".join(f"{name} {value:.2f} %" for name, value in savings.items())


@claim(
    "C88",
    "A.2",
    "The cost of the score gradient does not depend on r",
    "in the complexity table, backward minus what the input gradient and batch norm cost is the same at r = 0.99 and r = 0.5",
)
def overhead_is_constant(e: Evidence) -> Finding:
    # The input gradient costs what the forward convolution does, and both have 4 operations per output besides.
    cost = {r: b.backward(binary=True) - b.forward(binary=True, training=False) for r in (0.99, 0.5) for b in [block(e, sparsity=r)]}
    return cost[0.99] == cost[0.5], ", ".join(f"r={r}: {value:.3g}" for r, value in cost.items())


@claim(
    "C89",
    "3.3",
    "Binary weights scale the last layer by much more than 1",
    f"sqrt(l (1 - r) / 2) is at least {MUCH:g} for 512 neurons at r = 0.99",
)
def factor_is_large(e: Evidence) -> Finding:
    neurons = e.printed["last_layer"]["neurons"]
    factors = {r: theory.logit_factor(neurons, r) for r in (e.printed["headline"]["sparsity"], 0.998)}
    return factors[e.printed["headline"]["sparsity"]] >= MUCH, ", ".join(f"r={r}: {value:.2f}" for r, value in factors.items())


@claim(
    "C90",
    "A.3",
    "Binary weights scale a last layer of 512 inputs by 16, against a Kaiming constant",
    "sqrt(512 / 2) rounds to 16; the sentence names no r",
)
def factor_is_16(e: Evidence) -> Finding:
    facts, rate = e.printed["last_layer"], e.printed["headline"]["sparsity"]
    dense, sparse = theory.logit_factor(facts["neurons"], 0.0), theory.logit_factor(facts["neurons"], rate)
    return round(dense) == facts["scale"], f"{dense:.2f}; against the signed constant of 3.3, which knows r, {sparse:.2f} at r = {rate}"


@claim(
    "C96",
    "4.2",
    "FGSM with ATTA is much cheaper than PGD",
    f"at least {CHEAPER:g} times fewer forward-backward passes per update: steps + 1 each",
)
def fast_is_cheaper(e: Evidence) -> Finding:
    steps = load_all(ROOT)["binary_subnet"].run["attack"]["steps"]
    return (steps + 1) / 2 >= CHEAPER, f"{steps + 1} vs 2"


@claim("C97", "A.1", "At r = 0.99 a fixed rate leaves 17 weights in conv1", "(1 - r) of its weights, rounded down")
def conv1_keeps(e: Evidence) -> Finding:
    kept = (1 - e.printed["headline"]["sparsity"]) * resnet.layers(e.printed["network"])[0].weights
    return floor(kept) == e.printed["kept_in_conv1"], f"{kept:.2f}"


@claim("C98", "4.2", "The unpruned network has 100 times the parameters", "1 / (1 - r), rounded")
def times_parameters(e: Evidence) -> Finding:
    times = 1 / (1 - e.printed["headline"]["sparsity"])
    return round(times) == e.printed["times_parameters"], f"{times:.2f}"


@claim("C99", "4", "WideRN34-10 has almost twice the parameters of RN34", "the ratio of weights is below 2")
def wide_network(e: Evidence) -> Finding:
    facts = {key: value for key, value in e.printed["wide_network"].items() if key != "times"}
    ratio = resnet.wide_weights(**facts) / resnet.parameters(e.printed["network"], affine=False)
    return ratio < e.printed["wide_network"]["times"], f"{ratio:.2f}"
