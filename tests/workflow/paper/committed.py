"""A folder with what git tracks of results and docs: runs of one's own beside them do not count."""

import shutil
import subprocess
from pathlib import Path

from workflow.suite.planning.config import ROOT


def copy_to(folder: Path) -> Path:
    listed = subprocess.run(["git", "-C", str(ROOT), "ls-files", "results", "docs"], capture_output=True, text=True, check=True)
    for name in listed.stdout.split():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, folder / name)
    return folder
