"""Faults of the evaluation: the driver of AutoAttack, the network that it attacks, blocks and their seeds."""

from __future__ import annotations

from tests.mutants.mutant import in_file

BLOCK, NET, FOLD = (
    "tests/methods/evaluation/test_block.py",
    "tests/methods/evaluation/test_attacked_net.py",
    "tests/methods/networks/test_fold.py",
)
block = in_file("methods/evaluation/block.py", BLOCK)
attacked_net = in_file("methods/evaluation/attacked_net.py", NET)
sieve = in_file("methods/evaluation/sieve.py", NET)
runner = in_file("methods/evaluation/runner.py", BLOCK)
fold = in_file("methods/networks/fold.py", FOLD)

MUTANTS = (
    block("seed-kept-from-square-and-fab", 'seed=seed, version="standard"', 'seed=0, version="standard"'),
    block("seed-kept-from-apgd", '"seed": seed, "rho"', '"seed": 0, "rho"'),
    block("fab-starts-once", "adversary.fab.n_restarts = attack.restarts", "adversary.fab.n_restarts = 1"),
    block("targeted-fab-restarts", "        adversary.fab.n_restarts = 1\n", "        pass\n"),
    block("ball-of-twice-the-radius", "spec.radius * (1 + 1e-4) + 1e-6", "spec.radius * 2"),
    block("pixels-above-one", " or adversarial.max() > 1", ""),
    block("pixels-below-zero", " or adversarial.min() < 0", ""),
    block("clean-logits-computed-again", "view.knowing(x[rows], logits[rows])", "view"),
    block("clean-logits-of-other-rows", "view.knowing(x[rows], logits[rows])", "view.knowing(x[rows], logits[: len(rows)])"),
    block("word-of-the-engine-counts", "fooled = view.dense(adversarial)", "fooled = view(adversarial)", NET),
    attacked_net("stale-logits", "torch.equal(x, self.clean[0])", "x.shape == self.clean[0].shape"),
    attacked_net("gradient-from-memory", "and not torch.is_grad_enabled() and", "and"),
    attacked_net("memory-given-away", "self.clean[1].clone()", "self.clean[1]"),
    attacked_net("gradients-cost-nothing", "(2 if graded else 1)", "1"),
    sieve(
        "sieve-believes-the-engine",
        "self.net.confirmed(x.detach(), self.y, self.alive & (self.last.max(1)[1] != self.y))",
        "self.alive & (self.last.max(1)[1] != self.y)",
    ),
    runner("one-seed-for-all-blocks", "self.spec.block_seed(number)", "self.spec.block_seed(0)"),
    runner("seed-of-the-evaluation-ignored", "self.spec.block_seed(number)", "number"),
    fold("norm-called-twice", " or calls.count(node.target) > 1", ""),
    fold("convolution-called-twice", " or calls.count(before.target) > 1", ""),
    fold("convolution-seen-by-others", " or len(before.users) > 1", ""),
)
