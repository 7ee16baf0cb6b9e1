"""What trainings and evaluations record of themselves, with numbers that can be followed by hand."""

from methods.core import paths, sealed


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
    sealed.write(path, sealed.read(path) | {"after": after, "seconds": 7.5, "trust": {"state": "warn"}})
