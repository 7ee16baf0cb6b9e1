"""What trainings and evaluations record of themselves, with numbers that can be followed by hand."""

from methods.core import paths, sealed
from methods.core.fingerprint import file_digest
from tests.workflow.results.panels import measured
from workflow.suite.planning import config

N = 10000


def record(plan, run, folder):
    """All that a training with its phases, and an evaluation, record."""
    for seconds, item in enumerate(reversed(plan.lineage(run)), 10):
        manifest = {"report": {"weights": 200, "nonzero": 50}, "bytes": 1234, "epochs": 5, "best_epoch": 3, "validation_robust": 0.5}
        made = {"provenance": {"engine": "sparse", "wall_seconds": seconds, "files": {}}}
        path = folder / paths.train_manifest(item.name)
        path.parent.mkdir(parents=True, exist_ok=True)
        sealed.write(path, manifest | made)
    chosen = plan.evaluations[run]
    shard = folder / paths.shard(run, chosen.id, 1, chosen.shards)
    shard.parent.mkdir(parents=True, exist_ok=True)
    sealed.write(shard, {"provenance": {"engine": "dense", "files": {}}})
    path = folder / paths.evaluation(run, chosen.id)
    after = {"apgd-ce": 24 / 64, "apgd-t": 16 / 64, "fab-t": 16 / 64, "square": 16 / 64}
    broken = {"codes": ["none", "clean", *after], "examples": "0" * 16 + "1" * 24 + "2" * 16 + "3" * 8}
    panel = measured(temperature="warn", gradients="warn", iterations="fail").to_json()
    sealed.write(path, sealed.read(path) | {"after": after, "broken_by": broken, "seconds": 7.5, "trust": panel})


CURRENT = {"methods/pruning/masks.py": file_digest(config.ROOT / "methods" / "pruning" / "masks.py")}


def record_code(folder, planned, run, files):
    """Training and evaluation records of a Run and its ancestors, made by code that is `files`."""
    chosen = planned.evaluations[run]
    names = [paths.train_manifest(item.name) for item in planned.lineage(run)]
    names += [paths.shard(run, chosen.id, k, chosen.shards) for k in range(1, chosen.shards + 1)]
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        sealed.write(path, {"provenance": {"files": files}})
