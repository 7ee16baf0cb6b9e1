"""Faults of the baselines."""

from __future__ import annotations

from tests.mutants.mutant import in_file

bcs = in_file("baselines/bcs.py", "tests/baselines/test_bcs.py", "tests/golden/test_flyingbird_bcs.py")
flyingbird = in_file("baselines/flyingbird.py", "tests/baselines/test_flyingbird.py", "tests/golden/test_flyingbird_bcs.py")
connections = in_file("methods/pruning/connections.py", "tests/baselines/test_bcs.py", "tests/golden/test_flyingbird_bcs.py")
topology = in_file("methods/pruning/topology.py", "tests/baselines/test_flyingbird.py", "tests/golden/test_flyingbird_bcs.py")
hydra = in_file("baselines/hydra.py", "tests/baselines/test_hydra.py", "tests/golden/test_hydra_rst.py")
trades = in_file("baselines/trades.py", "tests/baselines/test_trades.py")
atmc = in_file(
    "baselines/atmc.py", "tests/baselines/test_atmc.py", "tests/methods/pruning/test_compression.py", "tests/golden/test_atmc.py"
)
admm = in_file(
    "methods/pruning/admm.py", "tests/baselines/test_atmc.py", "tests/methods/pruning/test_compression.py", "tests/golden/test_atmc.py"
)

MUTANTS = (
    connections("bcs-noise-everywhere", "torch.where(was_active, lr * noise, 0)", "lr * noise"),
    bcs("bcs-budget-one-less", "self.budget = int(self.keep * sum(self.sizes))", "self.budget = int(self.keep * sum(self.sizes)) - 1"),
    connections("bcs-sleeping-ones-wake", "self.theta.copy_(torch.where(was_active, self.theta, self.theta.clamp(max=0)))", "pass"),
    topology("flyingbird-threshold-not-strict", "return magnitude > magnitude", "return magnitude >= magnitude"),
    flyingbird(
        "flyingbird-late-one-epoch-early", "late = (step - 1) // per_epoch > epochs / 2", "late = (step - 1) // per_epoch >= epochs / 2"
    ),
    topology("flyingbird-optimiser-remembers", "                value.mul_(self.mask)\n", "                pass\n"),
    flyingbird("flyingbird-standstill-is-a-fall", "share(losses, window, or_equal=True)", "share(losses, window, or_equal=False)"),
    hydra("hydra-scores-not-scaled", "return weight * (sqrt(6 / fan_in) / weight.abs().max())", "return weight * 1.0"),
    hydra("hydra-norms-frozen", 'norm.requires_grad_(self.options["train_norms"])', "norm.requires_grad_(False)"),
    hydra(
        "hydra-one-update-less",
        "    clean, update = forward_with_statistics(net, x)\n    update()\n    adv",
        "    clean, update = forward_with_statistics(net, x)\n    adv",
    ),
    trades("trades-two-updates", '        if self.options["forwards"] == 3:\n            update()\n', ""),
    atmc("atmc-never-projected", "            keep_largest(tensors, kept)\n", "            pass\n"),
    admm("atmc-updates-at-the-first-batch", "batches == 1 or (batch > 0 and batch %", "batches == 1 or (batch %"),
    atmc("atmc-deploys-its-latents", 'self.admm.z[f"{layer}.{name}"]', 'self.admm.w[f"{layer}.{name}"]'),
)
