"""Faults of the attacks that networks are trained and validated with."""

from __future__ import annotations

from tests.mutants.mutant import in_file

PGD, GOLDEN = "tests/methods/attacks/test_pgd.py", "tests/golden/test_method.py"
pgd = in_file("methods/attacks/pgd.py", PGD)
atta = in_file("methods/attacks/atta.py", "tests/methods/attacks/test_atta.py")

MUTANTS = (
    pgd("pgd-starts-best-from-the-image", "best, best_loss = adv, torch", "best, best_loss = x, torch"),
    pgd("pgd-ties-take-the-last", "worse = losses > best_loss", "worse = losses >= best_loss"),
    pgd("pgd-takes-the-best-for-the-network", "worse = losses > best_loss", "worse = losses < best_loss"),
    pgd(
        "pgd-looks-at-one-more-point",
        "    for t in range(steps):\n        if t + 1 < steps:",
        "    for t in range(steps + 1):\n        if t < steps:",
    ),
    pgd(
        "pgd-descends",
        "adv = project(adv + alpha * sign, x, eps)\n    return best",
        "adv = project(adv - alpha * sign, x, eps)\n    return best",
    ),
    pgd(
        "pgd-leaves-the-range-of-pixels",
        "return (x + (moved - x).clamp_(-eps, eps)).clamp_(0, 1)",
        "return x + (moved - x).clamp_(-eps, eps)",
    ),
    pgd("pgd-leaves-the-box", "(x + (moved - x).clamp_(-eps, eps)).clamp_(0, 1)", "moved.clamp(0, 1)"),
    pgd("pgd-half-a-start", "(2 * u - 1) * eps", "u * eps", GOLDEN),
    pgd("trades-starts-at-the-image", "adv = x + 0.001 * draw_like", "adv = x + 0 * draw_like", GOLDEN),
    atta(
        "crop-range-one-too-large",
        "return draw(offsets), draw(offsets), draw(2)",
        "return draw(offsets + 1), draw(offsets + 1), draw(2)",
    ),
    atta("flips-never-drawn", "draw(offsets), draw(2)", "draw(offsets), draw(1)"),
    atta("pooled-never-seen", "        self.seen[index] = True\n", ""),
    atta("pooled-complete-too-early", "self.complete = bool(self.seen.all())", "self.complete = True"),
    atta("mirror-ignored", "torch.where(flip[:, None].bool(), columns.flip(1), columns)", "columns"),
    atta("padding-black", "FILL = 0.5", "FILL = 0.0"),
    atta("step-leaves-the-box", "(delta + alpha * sign).clamp_(-eps, eps)", "(delta + alpha * sign)"),
    atta("step-leaves-the-range-of-pixels", "delta = (x + delta).clamp_(0, 1) - x", "delta = (x + delta) - x"),
    atta("canvas-not-written", "    canvas[window] = delta\n", ""),
    atta("canvas-forgotten", "        self.canvas.write(index, after, part)\n", "", GOLDEN),
)
