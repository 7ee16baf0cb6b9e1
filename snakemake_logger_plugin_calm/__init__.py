"""A logger plugin of Snakemake, `--logger calm`: one line of progress instead of a page per job (workflow/suite/jobs/console.py).

Snakemake finds plugins by the name of their package. Its own way of printing is back with --verbose, -p, --debug-dag or --quiet, and its
log under .snakemake/log has everything in any case.
"""

from __future__ import annotations

import shutil
import sys
import threading
from logging import DEBUG, WARNING, LogRecord
from typing import Any

from snakemake_interface_logger_plugins.base import LogHandlerBase
from snakemake_interface_logger_plugins.common import LogEvent

from workflow.suite.jobs.console import Console

TERMINAL_SECONDS, LOG_SECONDS = 1.0, 60.0
# Before a run starts Snakemake's remarks are shown, for they may be what was asked for (--lint, --list-rules), but for these.
CHATTER = ("Assuming unrestricted", "Config file", "Building DAG", "host: ")
INTERRUPT = ("Terminating processes on user request", "Cancelling snakemake on user request")  # while jobs run, and between them
LOGFILE = "Complete log(s): "
NOTHING = "Nothing to be done"
# Said of a job that failed, whose own words are shown instead.
OF_JOBS = ("CalledProcessError", "At least one job did not complete", "Exiting because a job execution failed")


class LogHandler(LogHandlerBase):
    """Tells the console what happens and prints what it answers; on a terminal the last line is the progress, written over each second."""

    def __post_init__(self) -> None:
        settings = self.common_settings
        self.stream = sys.stdout if settings.stdout else sys.stderr
        self.terminal = self.stream.isatty()
        self.console, self.logfile = Console(), None
        self.started = self.told_jobs = False
        self.guard, self.over = threading.Lock(), threading.Event()
        self.native = self._native() if self._asked_for_more() else None

    def _asked_for_more(self) -> bool:
        settings = self.common_settings
        return bool(settings.verbose or settings.printshellcmds or settings.debug_dag or settings.quiet)

    def _native(self) -> Any:
        from snakemake.logging import ColorizingTextHandler

        return ColorizingTextHandler(nocolor=self.common_settings.nocolor, stream=self.stream)

    @property
    def writes_to_stream(self) -> bool:
        return True

    @property
    def writes_to_file(self) -> bool:
        return False

    @property
    def has_filter(self) -> bool:
        return self.native is None

    @property
    def has_formatter(self) -> bool:
        return self.native is None

    @property
    def needs_rulegraph(self) -> bool:
        return False

    def emit(self, record: LogRecord) -> None:
        if self.native is not None:
            self.native.setFormatter(self.formatter)
            self.native.emit(record)
            return
        try:
            with self.guard:
                self._show(self._lines(record))
        except BrokenPipeError:
            raise
        except Exception:
            self.handleError(record)

    def close(self) -> None:
        if self.native is None and not self.over.is_set():
            self.over.set()
            with self.guard:
                self._show(self.console.summary(self.logfile) if self.started and not self.common_settings.dryrun else [])
        super().close()

    def _lines(self, record: LogRecord) -> list[str]:
        """What a record means to a person."""
        event, console, message = getattr(record, "event", None), self.console, str(record.msg or "")
        if event == LogEvent.WORKFLOW_STARTED:
            self._start()
        elif event == LogEvent.RUN_INFO and hasattr(record, "stats") and not self.told_jobs:
            self.told_jobs = True
            ahead = console.expect(record.stats["total"])
            return [message.rstrip(), "-p lists every job"] if self.common_settings.dryrun else [ahead]
        elif hasattr(record, "forecast"):
            console.foresee(record.forecast)
        elif self.common_settings.dryrun and event is not None and event != LogEvent.ERROR:
            return []
        elif event == LogEvent.JOB_INFO:
            console.start(
                record.jobid, rule=record.rule_name, wildcards=record.wildcards, outputs=list(record.output), logs=list(record.log)
            )
        elif event == LogEvent.JOB_FINISHED:
            return console.finish(record.job_id)
        elif event == LogEvent.JOB_ERROR:
            return [] if console.interrupted else console.fail(record.jobid, rule=record.rule_name, logs=record.log, notes=record.aux)
        elif event in (None, LogEvent.ERROR, LogEvent.GROUP_ERROR):
            return self._remark(record.levelno, message, getattr(record, "exception", None))
        return []

    def _remark(self, level: int, message: str, exception: str | None) -> list[str]:
        """What Snakemake, or the suite through its logger, says in words."""
        if message.startswith(INTERRUPT):
            self.console.interrupted = True
            return ["stopping; trainings save their state"]
        if message.startswith(LOGFILE):
            self.logfile = message.removeprefix(LOGFILE)
            return []
        if level >= WARNING:
            known = any(words in message for words in OF_JOBS)
            return [] if known or self.console.interrupted else [_plain(message, exception)]
        if message.startswith(NOTHING):
            return [message]
        return [] if self.started or level <= DEBUG or message.startswith(CHATTER) else [message]

    def _start(self) -> None:
        self.started = True
        if not self.common_settings.dryrun:
            threading.Thread(target=self._tick, daemon=True).start()

    def _tick(self) -> None:
        while not self.over.wait(TERMINAL_SECONDS if self.terminal else LOG_SECONDS):
            with self.guard:
                if self.told_jobs and not self.over.is_set():
                    self._show([] if self.terminal else [self.console.line()])

    def _show(self, lines: list[str]) -> None:
        if self.terminal and self.started:
            self.stream.write("\r\033[K")
        self.stream.write("".join(f"{line}\n" for line in lines))
        if self.terminal and self.told_jobs and not self.over.is_set() and not self.common_settings.dryrun:
            self.stream.write(self.console.line()[: shutil.get_terminal_size().columns - 1])
        self.stream.flush()


def _plain(message: str, exception: str | None) -> str:
    """An error of the workflow without the lines of the Snakefile that it came through."""
    if exception != "WorkflowError":
        return message
    lines = [line for line in message.splitlines() if not line.startswith(("WorkflowError", '  File "'))]
    return "error: " + "\n".join(lines).strip() if lines else message
