"""What runs in a folder of results, and whether it has come to the same end."""

import contextlib
import json
from pathlib import Path

import psutil

from methods.core import paths

TABLE = paths.table("tiny", "few", "md")
ROWS = {name: paths.row("tiny", "few", name) for name in ("rst", "hydra")}
PATIENCE = 500  # seconds, for what takes ten on a quiet machine


def jobs(folder):
    """Processes that train or evaluate in a folder."""
    numbers = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            ours = process.cmdline()[1:4] in (["-m", "methods.warm", name] for name in ("methods.train", "methods.evaluate"))
            if ours and Path(process.cwd()) == folder.resolve():
                numbers.append(process.pid)
    return numbers


def ended(process, code=0):
    assert process.wait(PATIENCE) == code, process.log.read_text()
    return process.log.read_text()


def assert_same(folder, undisturbed, *targets):
    """The same numbers as the undisturbed run: table, networks, histories, and the answer for every image."""
    for target in targets:
        assert (folder / target).read_bytes() == (undisturbed / target).read_bytes()
    runs = sorted(path.name for path in (folder / "results/runs").iterdir())
    for name in runs:
        for file in (paths.model(name), paths.history(name)):
            assert (folder / file).read_bytes() == (undisturbed / file).read_bytes(), file
        for path in (undisturbed / paths.run_folder(name)).glob("eval/*.json"):
            mine = folder / path.relative_to(undisturbed)
            assert json.loads(mine.read_text())["broken_by"] == json.loads(path.read_text())["broken_by"], mine
        assert not (folder / paths.state_folder(name)).exists()
    assert len(runs) == (4 if TABLE in targets else 1 if ROWS["rst"] in targets else 3)


def contents(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
