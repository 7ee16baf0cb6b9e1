"""What a job asks a cluster for: minutes and megabytes, from the cost model (each further try asks for more), and GPUs."""

import math
from collections.abc import Iterable, Mapping

from methods.core import run_spec, settings
from methods.core.datasets import DATASETS
from methods.core.errors import UserError
from workflow.suite.cost import devices, work
from workflow.suite.cost.devices import Device
from workflow.suite.planning.config import Scale, Suite
from workflow.suite.planning.evaluate import Evaluation
from workflow.suite.planning.plan import Run

# The model predicts times of machines that were not measured: three times its answer, and time to start.
FACTOR, SPARE_MINUTES = 3.0, 15
HOST_MB, FLOAT = 1500, 4e-6  # torch and two Snakemakes; megabytes of a number


def device(suite: Suite, scale: Scale) -> Device:
    """The device that limits are computed for; a GPU that nobody knows is refused where none is needed, too."""
    gpu = devices.named(suite.gpu)
    return gpu if scale.require_gpu and not suite.allow_cpu else devices.named("cpu")


def processes(run: Run, suite: Suite, scale: Scale) -> int:
    """How many processes train a Run, each with a GPU of its own where the scale has GPUs."""
    return run_spec.processes(run.spec, suite.gpus_per_run if scale.require_gpu and not suite.allow_cpu else {})


def train_minutes(run: Run, chosen: Device, suite: Suite, attempt: int) -> int:
    """Of a training, were it done by one process; what does not fit goes on in the next try."""
    return minutes(chosen.training(run.spec), suite, attempt)


def evaluate_minutes(run: Run, evaluation: Evaluation, chosen: Device, suite: Suite, attempt: int) -> int:
    """Of one shard of an evaluation, were every image to withstand every attack."""
    return minutes(chosen.startup + chosen.seconds(work.evaluation(run.spec, evaluation.spec)) / evaluation.shards, suite, attempt)


def gpu_gigabytes(spec: Mapping) -> float:
    """Of a GPU's memory, what a training takes, estimated: what is trained with its gradients and momentum, two maps per layer and image
    of a batch, the images and stored perturbations, and a gigabyte for CUDA itself. No GPU was at hand to check it."""
    net, data, batch = work.network(spec), DATASETS[spec["dataset"]], spec["train"]["batch"]
    samples, side = data.counts(spec["data"])[0], data.side(spec["data"])
    maps = 2 * net.elements * batch * (2 if spec["train"].get("compute") == "bf16" else 4)
    pictures = 3 * side**2 * samples if data.image <= 32 else 0
    canvas = (side + 8) ** 2 if data.image <= 32 else ((side + 8) // 8) ** 2
    perturbations = 12 * canvas * samples if spec["attack"]["name"] == "fgsm_atta" else 0
    return 1 + 1e-9 * (6 * 4 * net.weights + maps + pictures + perturbations)


def require_room(specs: Iterable[Mapping], chosen: Device, count: int | None = None) -> None:
    """Refuse more Runs per GPU (those that the environment asks for) than its memory has room for."""
    count = settings.runs_per_gpu() if count is None else count
    if count == 1 or chosen.memory_gb is None:
        return
    largest = max(map(gpu_gigabytes, specs), default=0.0)
    if count * largest > chosen.memory_gb:
        fit = max(1, int(chosen.memory_gb // largest))
        raise UserError(
            f"{settings.RUNS_PER_GPU}={count}: the largest Run takes about {largest:.0f} GB and {chosen.title} has {chosen.memory_gb:g};"
            f" allowed: 1 to {fit} (the GPU is 'gpu' of workflow/config/suite.yaml)"
        )


def minutes(seconds: float, suite: Suite, attempt: int) -> int:
    return min(math.ceil(60 * suite.longest_hours), attempt * (math.ceil(FACTOR * seconds / 60) + SPARE_MINUTES))


def megabytes(spec: Mapping, scale: Scale, attempt: int, *, images: int) -> int:
    """Of the host: the data set, the network with its gradients and momentum, and on a CPU the feature maps of `images` at once."""
    net, data = work.network(spec), DATASETS[spec["dataset"]]
    # Small pictures are all in memory, at their whole size until they are shrunk; large ones are read as needed.
    pictures = 3 * data.image**2 * 1e-6 * max(data.train.values()) if data.image <= 32 else 4000
    maps = 0 if scale.require_gpu else 3 * FLOAT * net.elements * images
    return attempt * math.ceil((3 if scale.require_gpu else 1) * HOST_MB + pictures + 8 * FLOAT * net.weights + maps)
