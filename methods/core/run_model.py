"""What a Run may hold: one typed model, from which that of a part of a Run (as recipes, tables and scales write it) is derived.

A Run travels as plain data, since its canonical text is its identity (methods.core.run_spec); this model says which data is a Run.
A key that is added later has the default None, which renames no Run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

from msgspec import Meta

from methods.core.architectures import ARCHS
from methods.core.closed import Closed
from methods.core.datasets import DATASETS, SOURCES

if TYPE_CHECKING:
    Dataset: TypeAlias = str
    Source: TypeAlias = str
    Arch: TypeAlias = str
else:
    Dataset, Source, Arch = Literal[tuple(DATASETS)], Literal[SOURCES], Literal[tuple(ARCHS)]

Count = Annotated[int, Meta(ge=1)]
Share = Annotated[float, Meta(ge=0, lt=1, description="a number in [0, 1)")]
NotNegative = Annotated[float, Meta(ge=0)]
Positive = Annotated[float, Meta(gt=0)]
Step = Annotated[float, Meta(gt=0, description="a step size as a fraction of eps, above 0")]
NormMode = Literal["train", "eval"]


class Data(Closed, frozen=True):
    """Which images: their source, at most how many to train and to validate on, and the side they are averaged down to (their own has no
    name here)."""

    source: Source
    train: Count | None = None
    val: Count | None = None
    size: Annotated[int, Meta(ge=16, le=192, description="16 of CIFAR images; 64, 96, ..., 192 of ImageNet-100's")] | None = None


class Init(Closed, frozen=True):
    """Initial weights, and initial scores of scale `a` where scores are trained."""

    weights: Literal[
        "binary",
        "signed_kc",
        "signed_constant",
        "unsigned_constant",
        "xavier_constant",
        "kaiming_normal",
        "kaiming_normal_fan_out",
        "kaiming_uniform",
        "xavier_normal",
        "default",
    ]
    scores: Literal["uniform", "fan_uniform"] | None = None
    a: Annotated[float, Meta(gt=0, description="a score scale above 0")] | None = None


class Pgd(Closed, frozen=True, tag_field="name", tag="pgd"):
    """Projected gradient descent on the cross-entropy; `bn` is the mode of the batch norms meanwhile."""

    steps: Count
    step: Step
    start: Literal["uniform", "none"]
    pick: Literal["worst", "last"]
    bn: NormMode


class FgsmAtta(Closed, frozen=True, tag_field="name", tag="fgsm_atta"):
    """One step from a stored perturbation; `aligned` keeps that perturbation on the content of large images."""

    step: Step
    aligned: bool | None = None


class Trades(Closed, frozen=True, tag_field="name", tag="trades"):
    """Projected gradient descent on the divergence from the clean prediction."""

    steps: Count
    step: Step
    bn: NormMode | None = None


class NoAttack(Closed, frozen=True, tag_field="name", tag="none"):
    """Training on clean images."""


class Validate(Closed, frozen=True):
    """The PGD that selects the epoch: from a uniform start, and of the worst point, unless said otherwise. `by` is the accuracy that
    selects, robust unless said otherwise."""

    steps: Count
    step: Step
    start: Literal["uniform", "none"] | None = None
    pick: Literal["worst", "last"] | None = None
    by: Literal["robust", "clean"] | None = None


class Train(Closed, frozen=True):
    """Optimiser, schedule, budget. `bn_devices`: batch norms of so many devices, each over its own part of a batch; without it over
    the whole batch, on however many devices. `epoch_images`: an epoch sees so many of the shuffled training images."""

    optimizer: Literal["sgd", "adam", "sgdw"]
    lr: Positive
    weight_decay: NotNegative
    schedule: Literal["cosine", "cosine_hydra", "steps"]
    epochs: Count
    batch: Count
    momentum: Share | None = None
    milestones: list[NotNegative] | None = None
    warmup: NotNegative | None = None
    bn_devices: Annotated[int, Meta(ge=2)] | None = None
    compute: Literal["fp32", "bf16"] | None = None
    epoch_images: Count | None = None

    def __post_init__(self) -> None:
        if self.optimizer in ("sgd", "sgdw") and self.momentum is None:
            raise ValueError(f"'optimizer: {self.optimizer}' needs 'momentum'")
        if self.schedule == "steps" and self.milestones is None:
            raise ValueError("'schedule: steps' needs 'milestones'")


class Run(Closed, frozen=True):
    """One training. `options` are closed by the RECIPE of the method (methods.core.options). `precision` is absent from a phase
    whose network serves both precisions; `parent` is the id of the Run that a phase starts from."""

    method: Annotated[str, Meta(pattern=r"\A[a-z][a-z0-9_]*\Z", description="a module name of methods/ or baselines/")]
    version: Count
    dataset: Dataset
    data: Data
    arch: Arch
    lbn: bool
    bn_affine: bool
    normalize: bool
    head_bias: bool
    eps: Annotated[
        Literal[0] | Annotated[str, Meta(pattern=r"\A[0-9]+(\.[0-9]+)?/255\Z")],
        Meta(description='a radius such as "8/255", or 0 for vanilla training'),
    ]
    attack: Pgd | FgsmAtta | Trades | NoAttack
    validate: Validate
    train: Train
    seed: Annotated[int, Meta(ge=0)]
    phase: str | None = None
    precision: Literal["fp", "binary"] | None = None
    width: Annotated[float, Meta(gt=0, le=4, description="a factor on all channel counts in (0, 4]")] | None = None
    sparsity: Annotated[float, Meta(ge=0, lt=1, description="a pruned fraction r in [0, 1)")] | None = None
    p: (
        Annotated[
            Literal["global"] | Annotated[float, Meta(ge=0, le=1)],
            Meta(description='a number in [0, 1], or "global"'),
        ]
        | None
    ) = None
    init: Init | None = None
    options: dict[str, Any] | None = None
    parent: Annotated[str, Meta(pattern=r"\A[0-9a-f]{12}\Z", description="the id of a Run: 12 hex digits")] | None = None
