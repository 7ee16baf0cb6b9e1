"""All mutants, room by room."""

from __future__ import annotations

from tests.mutants import attacks, baselines, evaluation, planning, pruning, training

MUTANTS = (*training.MUTANTS, *attacks.MUTANTS, *pruning.MUTANTS, *baselines.MUTANTS, *evaluation.MUTANTS, *planning.MUTANTS)
