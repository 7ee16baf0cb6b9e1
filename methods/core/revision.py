"""Which state of the code is at work: the commit of its checkout."""

from __future__ import annotations

import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
THIS = "methods/core/revision.py"
CODE = ("methods", "baselines", "workflow")


def git(*words: str, root: Path = ROOT) -> str | None:
    """What a git command prints; None outside a checkout, or without git."""
    try:
        done = subprocess.run(["git", "-C", str(root), *words], capture_output=True, text=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def head(root: Path = ROOT) -> str | None:
    """The commit that is checked out; None of an installed copy."""
    return git("rev-parse", "HEAD", root=root) if _versioned(root) else None


def dirty(root: Path = ROOT) -> bool | None:
    """Whether tracked files differ from that commit; None where nobody can tell."""
    status = git("status", "--porcelain", "--untracked-files=no", root=root) if _versioned(root) else None
    return None if status is None else bool(status)


def made_by(root: Path = ROOT) -> str:
    """The line at the foot of a report: the last commit that changed the code. Committed results and reports do not count, else every
    report would change with the commit that it becomes part of."""
    commit = git("log", "-1", "--format=%H", "--", *CODE, root=root) if _versioned(root) else None
    if not commit:
        return "Rendered by an unversioned copy."
    changes = git("status", "--porcelain", "--untracked-files=no", "--", *CODE, root=root)
    return f"Rendered by {commit[:12]}{' with local changes' if changes else ''}."


def _versioned(root: Path) -> bool:
    """Whether git minds this code: it does not mind what is installed below somebody's checkout (in a .venv of it, say)."""
    return git("ls-files", "--error-unmatch", THIS, root=root) is not None
