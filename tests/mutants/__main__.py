"""Apply each mutant in a copy of the project, run its tests there, and print those that nobody noticed: `python -m tests.mutants`."""

from __future__ import annotations

import argparse
import os
import queue
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from fnmatch import fnmatch
from pathlib import Path

from tests.mutants.catalogue import MUTANTS
from tests.mutants.mutant import ROOT, Mutant

PASSED, FAILED = 0, 1  # pytest's exit codes; any other says that the tests themselves could not run
SECONDS = 900


def copy(folder: Path) -> Path:
    """The files that git knows or would know, without its history."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
    return folder


def pytest(tests: tuple[str, ...] | list[str], folder: Path, seconds: float | None = SECONDS) -> tuple[int | None, str]:
    """Exit code (none: it took too long) and the end of the output."""
    command = [sys.executable, "-B", "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *tests]
    environ = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        done = subprocess.run(command, cwd=folder, env=environ, capture_output=True, text=True, timeout=seconds)
    except subprocess.TimeoutExpired:
        return None, f"no end after {seconds} s"
    return done.returncode, (done.stdout + done.stderr)[-3000:]


def verdict(mutant: Mutant, folder: Path) -> tuple[str, str]:
    """ "noticed", "survived" or "broken", with what pytest said."""
    path = folder / mutant.path
    before = path.read_text(encoding="utf-8")
    path.write_text(mutant.applied(before), encoding="utf-8")
    try:
        code, output = pytest(mutant.tests, folder)
    finally:
        path.write_text(before, encoding="utf-8")
    return {PASSED: "survived", FAILED: "noticed", None: "noticed"}.get(code, "broken"), output


def chosen(names: list[str]) -> list[Mutant]:
    """Those whose name, or file, matches one of the given patterns; all without any."""
    return [m for m in MUTANTS if not names or any(fnmatch(m.name, name) or fnmatch(m.path, name) for name in names)]


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("names", nargs="*", help="mutants or files, as shell patterns (default: all)")
    parser.add_argument("--jobs", type=int, default=1, help="copies of the project that are worked in at the same time (default 1)")
    parser.add_argument("--trust", action="store_true", help="do not check first that the tests pass without any fault")
    options = parser.parse_args(arguments)
    mutants = chosen(options.names)
    if not mutants:
        print(f"error: no mutant is called {', '.join(options.names)}; allowed: {', '.join(m.name for m in MUTANTS)}", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory(prefix="mutants-") as scratch:
        folders: queue.Queue[Path] = queue.Queue()
        for number in range(options.jobs):
            folders.put(copy(Path(scratch) / str(number)))
        if not options.trust:
            tests = sorted({test for mutant in mutants for test in mutant.tests})
            code, output = pytest(tests, Path(scratch) / "0", seconds=None)
            if code != PASSED:
                print(f"error: the tests fail without any fault:\n{output}", file=sys.stderr)
                return 2

        def work(mutant: Mutant) -> tuple[Mutant, str, str]:
            folder, started = folders.get(), time.monotonic()
            try:
                result, output = verdict(mutant, folder)
            finally:
                folders.put(folder)
            print(f"{result:8}  {mutant.name}  ({time.monotonic() - started:.0f} s)", flush=True)
            return mutant, result, output

        with ThreadPoolExecutor(options.jobs) as pool:
            results = list(pool.map(work, mutants))
    return report(results)


def report(results: list[tuple[Mutant, str, str]]) -> int:
    """Print what was not noticed and what could not be tried; 0 where there is none."""
    bad = [(mutant, result, output) for mutant, result, output in results if result != "noticed"]
    print(f"\n{len(results) - len(bad)} of {len(results)} mutants were noticed")
    for mutant, result, output in bad:
        print(f"\n{result}: {mutant.name}\n  {mutant.path}\n  - {mutant.old!r}\n  + {mutant.new!r}\n  tests: {' '.join(mutant.tests)}")
        if result == "broken":
            print(output)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
