"""What a job asks a cluster for: minutes and megabytes, from the cost model (each further try asks for more), and GPUs."""

import math
from collections.abc import Mapping

from methods.core import run_spec
from methods.core.datasets import DATASETS
from workflow.suite.cost import devices, work
from workflow.suite.cost.devices import Device
from workflow.suite.planning.config import Scale, Suite
from workflow.suite.planning.plan import Evaluation, Run

# The model predicts times of machines that were not measured: three times its answer, and time to start.
FACTOR, SPARE_MINUTES = 3.0, 15
HOST_MB, FLOAT = 1500, 4e-6  # torch and two Snakemakes; megabytes of a number


def device(suite: Suite, scale: Scale) -> Device:
    """The device that limits are computed for."""
    return devices.named(suite.gpu if scale.require_gpu and not suite.allow_cpu else "cpu")


def processes(run: Run, suite: Suite, scale: Scale) -> int:
    """How many processes train a Run, each with a GPU of its own where the scale has GPUs."""
    return run_spec.processes(run.spec, suite.gpus_per_run if scale.require_gpu and not suite.allow_cpu else {})


def train_minutes(run: Run, chosen: Device, suite: Suite, attempt: int) -> int:
    """Of a training, were it done by one process; what does not fit goes on in the next try."""
    return minutes(chosen.training(run.spec), suite, attempt)


def evaluate_minutes(run: Run, evaluation: Evaluation, chosen: Device, suite: Suite, attempt: int) -> int:
    """Of one shard of an evaluation, were every image to withstand every attack."""
    return minutes(chosen.startup + chosen.seconds(work.evaluation(run.spec, evaluation.spec)) / evaluation.shards, suite, attempt)


def minutes(seconds: float, suite: Suite, attempt: int) -> int:
    return min(math.ceil(60 * suite.longest_hours), attempt * (math.ceil(FACTOR * seconds / 60) + SPARE_MINUTES))


def megabytes(spec: Mapping, scale: Scale, attempt: int, *, images: int) -> int:
    """Of the host: the data set, the network with its gradients and momentum, and on a CPU the feature maps of `images` at once."""
    net, data = work.network(spec), DATASETS[spec["dataset"]]
    # Small pictures are all in memory, at their whole size until they are shrunk; large ones are read as needed.
    pictures = 3 * data.image**2 * 1e-6 * max(data.train.values()) if data.image <= 32 else 4000
    maps = 0 if scale.require_gpu else 3 * FLOAT * net.elements * images
    return attempt * math.ceil((3 if scale.require_gpu else 1) * HOST_MB + pictures + 8 * FLOAT * net.weights + maps)
