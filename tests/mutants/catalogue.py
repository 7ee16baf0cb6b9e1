"""All mutants, room by room."""

from __future__ import annotations

from tests.mutants import attacks, baselines, evaluation, foundation, planning, pruning, results, training

ROOMS = (training, attacks, pruning, baselines, foundation, evaluation, planning, results)
MUTANTS = tuple(mutant for room in ROOMS for mutant in room.MUTANTS)
