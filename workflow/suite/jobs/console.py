"""What a person sees of a run: one line of progress, a line for each finished report, and of a failed job its own last words.

No Snakemake in here: what happens is told by calls, what is to be printed is returned. snakemake_logger_plugin_calm connects the two.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from methods.core import paths
from methods.core.durations import span
from workflow.suite.jobs.forecast import SMALL, Forecast
from workflow.suite.results import signs_of_life

VERBS = {"train": "training", "evaluate": "evaluating", "merge": "merging", "data": "verifying", "figure": "drawing"}
VERBS |= dict.fromkeys(("table", "row"), "rendering")
LAST_LINES = 12
STOPPED = "stopped"  # how a training begins its last line when it was asked to stop (methods/training)
EARLY = 0.02  # share of the work after which its speed says something


@dataclass(frozen=True, kw_only=True)
class Running:
    """A job under way."""

    rule: str
    subject: str
    outputs: Sequence[str]
    logs: Sequence[str]
    run: str | None = None

    @property
    def title(self) -> str:
        return f"{VERBS.get(self.rule, self.rule)} {self.subject}".strip()


class Console:
    """The state of a run as far as it has been told; `folder` is where its files lie."""

    def __init__(self, folder: Path = Path(), clock: Callable[[], float] = time.monotonic):
        self.folder, self.clock = folder, clock
        self.begun = clock()
        self.forecast = Forecast()
        self.jobs = 0  # in all
        self.running: dict[int, Running] = {}
        self.finished: set[int] = set()
        self.failed: set[int] = set()
        self.numbers: list[str] = []  # evaluations that were made
        self.interrupted = False

    def expect(self, jobs: int) -> str:
        """So many jobs are ahead."""
        self.jobs = jobs
        return f"{_count(jobs, 'job')} to do"

    def foresee(self, forecast: Forecast) -> None:
        """What they amount to."""
        self.forecast = forecast

    def start(self, number: int, *, rule: str, wildcards: Mapping[str, str], outputs: Sequence[str], logs: Sequence[str]) -> None:
        """A job begins."""
        run = wildcards.get("run")
        named = [wildcards[key] for key in ("row", "table", "figure", "dataset") if key in wildcards]
        subject = run.rpartition(".")[0] if run else next(iter(named), "")
        self.failed.discard(number)  # another try
        self.running[number] = Running(rule=rule, subject=subject, outputs=outputs, logs=logs, run=run)

    def finish(self, number: int) -> list[str]:
        """A job is done; of a report where it lies."""
        job = self.running.pop(number, None)
        self.finished.add(number)
        self.numbers += [name for name in job.outputs if name in self.forecast.shown_in] if job else []
        reports = [name for name in job.outputs if name.startswith(f"{paths.REPORTS}/")] if job else []
        return [f"made {_together(reports)}"] if reports else []

    def fail(self, number: int, *, rule: str, logs: Sequence[str], notes: Mapping[str, object] | None = None) -> list[str]:
        """A job has failed, or has stopped because it was asked to: why, and the last lines of its log."""
        job = self.running.pop(number, None) or Running(rule=rule, subject="", outputs=(), logs=logs)
        log = next((name for name in logs if (self.folder / name).is_file()), None)
        lines = signs_of_life.tail(self.folder / log) if log else []
        if lines and lines[-1].startswith(STOPPED):
            return [f"{job.title}: {lines[-1]}"]
        self.failed.add(number)
        reason = signs_of_life.failure(lines)
        shown = [f"FAILED: {job.title}{f': {reason}' if reason else ''}"]
        if lines[-1:] != [reason] or len(lines) > 1:
            shown += [f"  last lines of {log}:", *(f"    {line}" for line in lines[-LAST_LINES:])] if lines else []
        if not lines:
            shown.append(f"  it left nothing in {', '.join(logs) or 'a log'}")
        return shown + [f"  {key}: {value}" for key, value in (notes or {}).items()]

    def line(self) -> str:
        """Percent, cells, time left, what runs now."""
        share, words = self.share(), []
        words.append(f"{int(100 * share)} %")
        if cells := self.forecast.cells:
            words.append(f"{sum(cell <= self.finished for cell in cells)} of {_count(len(cells), 'cell')}")
        else:
            words.append(f"{len(self.finished)} of {_count(self.jobs, 'job')}")
        if share > EARLY:
            words.append(f"about {span((self.clock() - self.begun) * (1 - share) / share)} left")
        if self.failed:
            words.append(f"{len(self.failed)} failed")
        if now := self.now():
            words.append(now)
        return " | ".join(words)

    def share(self) -> float:
        """How much of the work is done, trainings under way included; 1 where there is none."""
        seconds = self.forecast.seconds or dict.fromkeys(range(self.jobs), SMALL)
        done = sum(seconds.get(number, 0.0) for number in self.finished) if self.forecast.seconds else SMALL * len(self.finished)
        for number, job in self.running.items():
            done += seconds.get(number, 0.0) * self._part(job)
        total = sum(seconds.values())
        return min(1.0, done / total) if total else 1.0

    def now(self) -> str:
        """What runs: the longest under way in full, the others counted."""
        if not self.running:
            return ""
        job, others = next(iter(self.running.values())), len(self.running) - 1
        detail = ""
        if job.rule == "train" and (told := self._told(job)):
            detail = f" ({signs_of_life.epoch(told)})"
        elif job.rule == "evaluate" and job.logs and (lines := signs_of_life.tail(self.folder / job.logs[0])):
            detail = f" ({lines[-1].split(',')[0]})" if "/" in lines[-1].split(",")[0] else ""
        return f"{job.title}{detail}{f' and {others} more' if others else ''}"

    def summary(self, log: str | None) -> list[str]:
        """The last words of a run."""
        took = span(self.clock() - self.begun)
        everything = f" Everything Snakemake said: {log}" if log else ""
        kept = f"what was finished is kept ({_count(len(self.finished), 'job')}), and the same command goes on from there."
        if self.interrupted:
            return [f"Stopped as you asked, after {took}: trainings have saved their state, {kept}"]
        if self.failed:
            return [f"{_count(len(self.failed), 'job')} failed after {took}: {kept}{everything}"]
        if self.finished:
            return [f"Done: {_count(len(self.finished), 'job')} in {took}.{everything}", *self.outdated()]
        return []

    def outdated(self) -> list[str]:
        """Tables that were rendered before a number of theirs was made, and how to render them again."""
        pairs = [(self.folder / table, self.folder / name) for name in self.numbers for table in self.forecast.shown_in[name]]
        older = {table: None for table, name in pairs if table.is_file() and table.stat().st_mtime < name.stat().st_mtime}
        names = " ".join(str(table.relative_to(self.folder)) for table in older)
        return [f"Older than their numbers now: {names}. To refresh: snakemake --cores 1 {names}"] if names else []

    def _part(self, job: Running) -> float:
        told = self._told(job) if job.rule == "train" else None
        return told["done"] / max(1, told["epochs"] * told["steps"]) if told else 0.0

    def _told(self, job: Running) -> dict | None:
        return signs_of_life.progress(self.folder / paths.progress(job.run)) if job.run else None


def _together(names: Sequence[str]) -> str:
    """a.md, .tex, .csv"""
    first, *others = map(Path, names)
    return ", ".join([str(first), *(path.suffix if path.with_suffix("") == first.with_suffix("") else str(path) for path in others)])


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
