"""Faults of what is said about results: verdicts, stale numbers, claims, statistics."""

from __future__ import annotations

from tests.mutants.mutant import in_file

COMPARE, DIFF, CELLS, PAIRED = (f"tests/workflow/results/test_{name}.py" for name in ("compare", "diff", "cells", "paired"))
compare = in_file("workflow/suite/results/compare.py", COMPARE, DIFF)
stale = in_file("workflow/suite/results/stale.py", COMPARE)
cells = in_file("workflow/suite/results/cells.py", CELLS)
evidence = in_file("workflow/suite/paper/claims/evidence.py", CELLS, "tests/workflow/paper/test_claims.py")
stats = in_file("workflow/suite/results/stats.py", "tests/workflow/results/test_stats.py")
paired = in_file("workflow/suite/results/paired.py", PAIRED)
standing = in_file("workflow/suite/results/standing.py", *(f"tests/workflow/results/test_{name}.py" for name in ("standing", "status")))

MUTANTS = (
    compare(
        "strict-counts-what-we-have",
        "for item in differences if item.reference is not None)",
        "for item in differences if item.ours is not None)",
    ),
    compare("strict-is-content-with-one", 'return all(item.verdict == "reproduced"', 'return any(item.verdict == "reproduced"'),
    compare("stale-hidden-at-reduced-scales", "        if old:\n", "        if old and plan.scale.comparable:\n"),
    compare("reduced-scales-reproduce", "elif not plan.scale.comparable:", "elif plan.scale.name == 'none':"),
    compare("no-room-for-rounding", "bounds[0] - ROUNDING <= reference <= bounds[1] + ROUNDING", "bounds[0] < reference < bounds[1]"),
    compare("lower-is-higher", 'return "lower" if ours < reference else "higher"', 'return "higher" if ours < reference else "lower"'),
    stale("parents-do-not-count", "for item in plan.lineage(run))", "for item in plan.lineage(run)[:1])"),
    stale("a-file-that-is-gone-does-not-count", "_digest(name, root) != before]", "_digest(name, root) not in (before, None)]"),
    cells("pending-cells-are-none", 'PENDING = ("not run", "not available")', 'PENDING = ("not available",)'),
    cells("cells-not-available-are-none", 'PENDING = ("not run", "not available")', 'PENDING = ("not run",)'),
    evidence("claims-on-pending-cells", "        if pending:\n", "        if pending > len(lines):\n"),
    stats("deviation-of-a-population", "/ (len(values) - 1))", "/ len(values))"),
    stats("wald-interval", "centre = (share + spread / 2) / (1 + spread)", "centre = share"),
    paired("one-sided-test", "min(1.0, 2 * float(bdtr", "min(1.0, 1 * float(bdtr"),
    paired("bonferroni-for-holm", "(len(p_values) - rank) * p_values[place]", "len(p_values) * p_values[place]"),
    standing("stale-cells-are-done", '"stale" if "stale" in own else "done"', '"done"'),
)
