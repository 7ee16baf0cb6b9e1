"""What is known of one finished Run: its network, its evaluation, its time, as its own files record it."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from methods.core import paths, sealed
from methods.core.run_spec import get
from workflow.suite.planning.plan import Plan
from workflow.suite.results import measure


@dataclass(frozen=True, kw_only=True)
class Attack:
    """One attack of an evaluation: how many images it broke of those that the attacks before it had left, and the accuracy after it."""

    name: str
    broke: int
    left: float


@dataclass(frozen=True, kw_only=True)
class RunFacts:
    """Fractions, bytes and seconds; `None` where a file does not say. `phases` are the manifests of this training and of those that it
    starts from, its own first; `evaluated` is the merged evaluation, `shards` its parts."""

    run: str
    seed: int
    compute: str
    phases: tuple[Mapping[str, Any], ...]
    evaluated: Mapping[str, Any] | None
    shards: tuple[Mapping[str, Any], ...]

    @property
    def trained(self) -> Mapping[str, Any]:
        return self.phases[0]

    @property
    def validation(self) -> float | None:
        """Accuracy on the validation images of the epoch that was kept, under the attack that selects it."""
        return self.trained.get("validation_robust")

    @property
    def best_epoch(self) -> int | None:
        """Counted from 1; in the file it is counted from 0."""
        best = self.trained.get("best_epoch")
        return None if best is None else best + 1

    @property
    def epochs(self) -> int | None:
        return self.trained.get("epochs")

    @property
    def sparsity(self) -> float | None:
        """The share of convolution weights that are zero in the finished network."""
        report = self.trained.get("report", {})
        return 1 - report["nonzero"] / report["weights"] if report.get("weights") else None

    @property
    def bytes(self) -> int | None:
        """Of the compact file; a network that is not pruned has none."""
        return self.trained.get("bytes")

    @property
    def engine(self) -> str | None:
        """What computed the training."""
        return self.trained.get("provenance", {}).get("engine")

    @property
    def imitated(self) -> bool:
        """Whether the training's number format was imitated by a processor without units for it."""
        return "imitated" in self.trained.get("provenance", {})

    @property
    def attacked_by(self) -> str | None:
        """The engine that attacks searched on."""
        names = dict.fromkeys(shard["provenance"]["engine"] for shard in self.shards if shard.get("provenance", {}).get("engine"))
        return " and ".join(names) or None

    @property
    def training_seconds(self) -> float | None:
        """Wall time, with the phases that the Run starts from; unknown where one of them is."""
        spent = [_wall(manifest.get("provenance", {})) for manifest in self.phases]
        return None if None in spent else sum(spent)

    @property
    def evaluation_seconds(self) -> float | None:
        return (self.evaluated or {}).get("seconds")

    @property
    def attacks(self) -> list[Attack]:
        """In the order in which they were run; none of a clean evaluation."""
        if self.evaluated is None:
            return []
        before, attacks = self.evaluated["clean_acc"], []
        for name, left in self.evaluated.get("after", {}).items():
            attacks.append(Attack(name=name, broke=round((before - left) * self.evaluated["n"]), left=left))
            before = left
        return attacks


def of_run(plan: Plan, run: str, folder: Path) -> RunFacts:
    """What the files of a Run of the plan say; of one that is not begun, nothing."""
    chosen, spec = plan.evaluations.get(run), plan.runs[run].spec
    shards = range(1, chosen.shards + 1) if chosen else ()
    return RunFacts(
        run=run,
        seed=spec["seed"],
        compute=get(spec, "train.compute") or "fp32",
        phases=tuple(_read(folder / paths.train_manifest(item.name)) for item in plan.lineage(run)),
        evaluated=measure.read(run, chosen.id, folder) if chosen else None,
        shards=tuple(_read(folder / paths.shard(run, chosen.id, k, chosen.shards)) for k in shards) if chosen else (),
    )


def _wall(made: Mapping[str, Any]) -> float | None:
    return made.get("wall_seconds", made.get("seconds"))


def _read(path: Path) -> dict[str, Any]:
    try:
        return sealed.read(path)
    except FileNotFoundError:
        return {}
