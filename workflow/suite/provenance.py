"""Which state of the code rendered a report."""

import subprocess
from pathlib import Path


def commit(root: Path) -> str:
    """The commit of the checkout at `root`, with a word if it was changed since; "an unversioned copy" outside git."""
    revision = _git(root, "rev-parse", "--short=12", "HEAD")
    if revision is None:
        return "an unversioned copy"
    return revision + (" with local changes" if _git(root, "status", "--porcelain", "--untracked-files=no") else "")


def made_by(root: Path) -> str:
    """The line at the foot of a report."""
    return f"Rendered by {commit(root)}."


def _git(root: Path, *words: str) -> str | None:
    try:
        done = subprocess.run(["git", "-C", str(root), *words], capture_output=True, text=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None
