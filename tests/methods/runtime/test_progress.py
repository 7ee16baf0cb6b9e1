"""The progress report."""

from __future__ import annotations

import io

import pytest

from methods.runtime.progress import Progress


def test_progress_claims_a_time_only_as_far_as_it_is_known():
    log, now = io.StringIO(), [0.0]
    progress = Progress(100, log, passes=50, clock=lambda: now[0])
    assert progress.left is None
    progress.block(20, 5, computed=0.0)  # taken over from an earlier run: says nothing about speed
    assert progress.left is None
    progress.attack("apgd-ce", 1, 20, 10, passes=500)
    now[0] = 8.0
    progress.tick(100)  # 0.08 s a pass: at most 400 here, and 60 more examples of 50 each
    assert progress.left == (pytest.approx((400 + 60 * 50) * 0.08), True)
    assert log.getvalue() == ""  # a log is not flooded
    now[0] = 40.0
    progress.attack("square", 1, 20, 2, passes=100)
    assert log.getvalue() == "20/100 examples, 5 of them unbroken, at most 21 min left (block 1: square on 2 of 20)\n"
    progress.block(20, 5, computed=40.0)
    assert progress.left == (pytest.approx(60 * 40 / 20), False)
    progress.block(60, 1, computed=1.0)
    assert log.getvalue().splitlines()[1:] == ["100/100 examples, 11 of them unbroken"]
