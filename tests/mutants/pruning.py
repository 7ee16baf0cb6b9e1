"""Faults of masks, makers and of how many weights each layer keeps."""

from __future__ import annotations

from tests.mutants.mutant import in_file

MAKERS, SUBNET = "tests/methods/pruning/test_masks_makers.py", "tests/methods/test_binary_subnet.py"
masks = in_file("methods/pruning/masks.py", MAKERS)
makers = in_file("methods/pruning/makers.py", MAKERS)
subnet = in_file("methods/binary_subnet.py", SUBNET)
allocation = in_file("methods/core/allocation.py", MAKERS)

MUTANTS = (
    masks("mask-keeps-one-more", "torch.topk(flat, max(kept, 0), sorted=False)", "torch.topk(flat, kept + 1, sorted=False)"),
    masks(
        "mask-keeps-the-smallest",
        "torch.topk(flat, max(size - kept, 0), largest=False,",
        "torch.topk(flat, max(size - kept, 0), largest=True,",
    ),
    masks(
        "global-mask-per-layer",
        "    mask = top_mask(flat, kept)\n",
        "    mask = torch.cat([top_mask(score.reshape(-1), kept // len(scores)) for score in scores])\n",
    ),
    makers("signed-scores", "_Mask.apply(scores.abs(), kept)", "_Mask.apply(scores, kept)"),
    makers("sign-of-zero", "torch.where(latent >= 0, 1.0, -1.0)", "torch.where(latent > 0, 1.0, -1.0)"),
    makers(
        "gradient-only-where-kept",
        "    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:\n        return grad, None",
        "    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:\n        return grad.clamp(max=0), None",
    ),
    makers("scored-latents-not-clamped", "            self.weight.clamp_(-1, 1)\n", "            pass\n"),
    makers("frozen-latents-clamped", "if self.binary and self.weight.requires_grad:", "if self.binary:"),
    makers("latents-not-clamped", "        self.latent.clamp_(-1, 1)\n", "        pass\n"),
    makers("weights-not-prepared", "                    prepare()\n", "                    pass\n"),
    subnet("global-budget-one-less", "self.budget = int(self.keep * sum(sizes))", "self.budget = int(self.keep * sum(sizes)) - 1"),
    subnet("global-budget-one-more", "self.budget = int(self.keep * sum(sizes))", "self.budget = int(self.keep * sum(sizes)) + 1"),
    subnet("global-counts-frozen", "maker.kept = mask", "maker.kept = mask if isinstance(maker.kept, int) else maker.kept"),
    allocation("kept-rounded-down", "return size - floor((1 - fraction) * size)", "return floor(fraction * size)"),
    allocation("exponent-ignored", "wanted = constant * sizes[i] ** (p - 1)", "wanted = constant * sizes[i] ** -p"),
    allocation("keep-in-binary-arithmetic", "return float(1 - Decimal(repr(sparsity)))", "return 1 - sparsity"),
)
