"""Faults of data, networks, files and of several processes."""

from __future__ import annotations

from tests.mutants.mutant import in_file

SPLIT, AUGMENT, EPOCHS = (f"tests/methods/data/test_{name}.py" for name in ("split", "augment", "epochs"))
RESUME = "tests/methods/training/test_resume.py"
split = in_file("methods/data/split.py", SPLIT, EPOCHS)
augment = in_file("methods/data/augment.py", AUGMENT)
size = in_file("methods/data/size.py", "tests/methods/data/test_size.py")
init = in_file("methods/networks/init.py", "tests/methods/networks/test_init.py", "tests/methods/pruning/test_masks_makers.py")
resnet = in_file("methods/networks/resnet.py", "tests/methods/networks/test_resnet.py", "tests/golden/test_method.py")
sealed = in_file("methods/core/sealed.py", "tests/methods/core/test_sealed.py")
resume = in_file("methods/training/resume.py", f"{RESUME}::test_the_older_of_two_states_is_kept")
fingerprint = in_file("methods/core/fingerprint.py", "tests/methods/core/test_fingerprint.py")

MUTANTS = (
    split("one-shuffle-for-all-epochs", 'generator(seed, "order", shuffle)', 'generator(seed, "order", 0)'),
    split("seed-ignored-in-the-order", 'generator(seed, "order", shuffle)', 'generator(0, "order", shuffle)'),
    split("short-epochs-overlap", "order[part * count : (part + 1) * count]", "order[:count]", EPOCHS),
    split("augments-alike-in-every-batch", 'generator(seed, "augment", epoch, number)', 'generator(seed, "augment", epoch, 0)'),
    split("pixels-up-to-256", "images.float().div_(255)", "images.float().div_(256)"),
    augment("crop-range-one-too-small", "torch.randint(0, 2 * pad + 1, (2, count)", "torch.randint(0, 2 * pad, (2, count)"),
    augment(
        "never-mirrored",
        "columns = right[:, None] + torch.where(flip[:, None], across.flip(0), across)",
        "columns = right[:, None] + across",
    ),
    augment(
        "turned-the-other-way",
        "matrix[:, 0, 1], matrix[:, 1, 0] = -angle.sin(), angle.sin()",
        "matrix[:, 0, 1], matrix[:, 1, 0] = angle.sin(), -angle.sin()",
    ),
    augment("turned-twice-as-far", "DEGREES = 15", "DEGREES = 30"),
    augment(
        "shifted-half-as-far",
        "matrix[:, 0, 0], matrix[:, 0, 2] = flip, 2 * right",
        "matrix[:, 0, 0], matrix[:, 0, 2] = flip, right",
    ),
    size("halves-rounded-down", "rows[..., 1::2] + 2) >> 2", "rows[..., 1::2]) >> 2"),
    init("constants-by-fan-out", "fan = fan_in(shape)\n", "fan = fan_out(shape)\n"),
    init("constants-not-by-the-kept-fraction", "sqrt(2 / (fan * keep))", "sqrt(2 / fan)"),
    init(
        "scores-of-one-sign",
        "draw = (torch.rand(shape, generator=generator) * 2 - 1) * a",
        "draw = torch.rand(shape, generator=generator) * a",
    ),
    resnet("input-not-normalised", "        x = (x - self.mean) / self.std\n", ""),
    resnet("last-norm-forgotten", "            x = self.last_norm(x)\n", "            pass\n"),
    sealed("damage-unnoticed", 'value.get("sha256") != digest(value)', '"sha256" not in value'),
    resume(
        "states-of-other-code",
        'if saved["key"] == self.key:',
        'if saved["key"]:',
        f"{RESUME}::test_a_state_of_another_spec_or_other_code_is_not_taken_up",
    ),
    fingerprint(
        "attacks-do-not-count", '("data", "networks", "pruning", "attacks", "sparse")', '("data", "networks", "pruning", "sparse")'
    ),
)
