"""What a claim can be tested on: the paper's print, or our results."""

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from methods.core import paths
from workflow.suite.jobs import damage
from workflow.suite.paper import printed
from workflow.suite.paper.claims import verdicts
from workflow.suite.paper.claims.amount import Amount, of_cell
from workflow.suite.paper.claims.condition import Condition
from workflow.suite.paper.claims.verdicts import Judgement
from workflow.suite.planning.plan import Plan
from workflow.suite.planning.tables import Table, load_tables
from workflow.suite.results import cells
from workflow.suite.results.masks import Pair, read_pair
from workflow.suite.results.measure import Measured, measure

# Cells whose networks and training curves stand for the figures.
MASKED = {"robust": "main_comparison.ours.cifar10-binary", "vanilla": "vanilla.ours.cifar10-binary"}


class NoVerdict(Exception):
    """The evidence does not hold what the rule needs."""

    def __init__(self, verdict: str, why: str):
        super().__init__(why)
        self.verdict = verdict


@dataclass(frozen=True, kw_only=True)
class Evidence(ABC):
    """Numbers of cells, and the paper's printed facts; subclasses know masks and learning curves, and how to decide.

    Of a `part`, cells without a number are as if there were no such cells.
    """

    cells: pd.DataFrame
    tables: Mapping[str, Table]
    printed: Mapping[str, Any] = field(default_factory=printed.load)
    part: bool = False

    def numbers(self, **equal: object) -> pd.DataFrame:
        """The cells with these settings that have a number; a list matches any of its items. `value` is the number, `amount` the same
        that knows its cell. Cells still to come forbid a verdict."""
        if equal.get("table", next(iter(self.tables), None)) not in self.tables:
            raise self.lacks("number", f"there is no table {equal['table']}")
        chosen = np.ones(len(self.cells), bool)
        for key, wanted in equal.items():
            column = self.cells[key].to_numpy()
            chosen &= np.isin(column, wanted) if isinstance(wanted, list) else column == wanted
        lines = self.cells[chosen]
        pending = int((lines["state"] == "pending").sum())
        if pending:
            where = f"{group}: " if isinstance(group := equal.get("group"), str) else ""
            raise self.lacks("results", f"{where}{pending} of {len(lines)} cells are not measured yet")
        lines = lines[lines["state"] == "number"]
        amounts = [of_cell(address, value) for address, value in zip(lines["address"], lines["value"], strict=True)]
        return lines.assign(amount=pd.Series(amounts, index=lines.index, dtype=object))

    def number(self, **equal: object) -> Amount:
        """The one number with these settings."""
        lines = self.numbers(**equal)
        if len(lines) != 1:
            where = ", ".join(map(str, equal.values()))
            raise self.lacks("number", f"{len(lines) or 'no'} number{'s' * bool(len(lines))} for {where}")
        return lines["amount"].iloc[0]

    @abstractmethod
    def decide(self, condition: Condition, numbers: str) -> Judgement:
        """The verdict on what a claim demands."""

    @abstractmethod
    def lacks(self, what: str, why: str) -> NoVerdict:
        """The verdict where a number, results, pictures or epochs are missing."""

    @abstractmethod
    def print_only(self) -> None:
        """Called by claims about what the paper printed: nothing of ours can confirm them."""

    @abstractmethod
    def masks(self, training: str) -> Pair:
        """Masks of two consecutive convolutions of one block of the network of MASKED, trained so."""

    @abstractmethod
    def curve(self, address: str) -> list[float]:
        """Validation robust accuracy per epoch of a cell's training."""


@dataclass(frozen=True, kw_only=True)
class Paper(Evidence):
    """The paper's own numbers; its pictures have none."""

    def decide(self, condition: Condition, numbers: str) -> Judgement:
        return Judgement(verdict=verdicts.plainly(condition), numbers=numbers)

    def lacks(self, what: str, why: str) -> NoVerdict:
        return NoVerdict(verdicts.LACKS_PAPER[what], why)

    def print_only(self) -> None:
        return

    def masks(self, training: str) -> Pair:
        raise self._unprinted(f"masks.{training}")

    def curve(self, address: str) -> list[float]:
        raise self._unprinted("curves")

    def _unprinted(self, kind: str) -> NoVerdict:
        if kind in self.printed["pictures"]:
            return self.lacks("picture", "a picture without numbers")
        return self.lacks("picture or number", "no picture and no number")


@dataclass(frozen=True, kw_only=True)
class Ours(Evidence):
    """What lies under a folder of results."""

    plan: Plan
    folder: Path

    def decide(self, condition: Condition, numbers: str) -> Judgement:
        """At a reduced scale nothing is decided; but where its orderings may be looked at, claims about orderings are."""
        scale = self.plan.scale
        if not scale.comparable and not (scale.orderings and verdicts.is_ordering(condition)):
            return Judgement(verdict="not testable at this scale", numbers=numbers)
        verdict, note = verdicts.tested(condition, self.measured)
        return Judgement(verdict=verdict, numbers=f"{numbers}; {note}" if note else numbers)

    def lacks(self, what: str, why: str) -> NoVerdict:
        return NoVerdict(verdicts.LACKS_OURS[what], why)

    def measured(self, address: str) -> Measured:
        """What is measured for a cell; read once."""
        if address not in self._read:
            self._read[address] = measure(self.plan, self.plan.cells[address], self.folder)
        return self._read[address]

    @cached_property
    def _read(self) -> dict[str, Measured]:
        return {}

    def print_only(self) -> None:
        raise self.lacks("print", "about the paper's print")

    def masks(self, training: str) -> Pair:
        run = self._run(MASKED[training])
        if not (self.folder / paths.train_manifest(run)).is_file():
            raise self.lacks("results", f"{MASKED[training]} is not trained yet")
        return read_pair(damage.checked_model(run, self.folder))

    def curve(self, address: str) -> list[float]:
        run = self._run(address)
        path = self.folder / paths.history(run)
        if not (self.folder / paths.train_manifest(run)).is_file():
            raise self.lacks("results", f"{address} is not trained yet")
        damage.check_history(run, self.folder)
        return [json.loads(line)["val_robust"] for line in path.read_text(encoding="utf-8").splitlines()]

    def _run(self, address: str) -> str:
        runs = self.plan.cells[address].runs
        if not runs:
            raise self.lacks("results", f"{address} is not available")
        return runs[0]


def of_paper(tables: Mapping[str, Table] | None = None) -> Paper:
    """The paper as evidence."""
    tables = numbered(load_tables() if tables is None else tables)
    return Paper(cells=cells.of_paper(tables), tables=tables)


def of_results(plan: Plan, folder: Path) -> Ours:
    """Our results as evidence."""
    tables = numbered(plan.tables)
    return Ours(cells=cells.of_results(plan, tables, folder), tables=tables, plan=plan, folder=folder)


def numbered(tables: Mapping[str, Table]) -> dict[str, Table]:
    """The paper's tables: its claims are about them, whatever other tables there are."""
    return {name: table for name, table in tables.items() if table.number is not None}
