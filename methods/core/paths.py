"""Every file name under results/, reports/ and logs/, spelled here and nowhere else.

Names are relative to the working directory. The functions also serve as patterns: given "{run}" they return what a
Snakemake rule declares.
"""

RESULTS = "results"
REPORTS = "reports"
LOGS = "logs"
FORMATS = ("md", "tex", "csv")
CLOSED = ("complexity", "smallnet")  # tables that need no Run
CHECKS = ("diff", "claims")
PICTURES = ("png", "pdf")
FRAMES = ("parquet", "csv")
CURVE_NORMS = ("Linf", "L2")

# Names inside the folder of a Run.
SPEC, HISTORY, MODEL, HANDOVER = "spec.json", "history.jsonl", "model.safetensors", "handover.safetensors"
COMPACT = "network.rbs"
MANIFEST = "train.json"  # written last: its presence says that the Run is complete
STATE, PROGRESS = "state", "progress.json"
BLOCKS = "blocks"  # unfinished parts of an evaluation, beside its shards


def data_manifest(dataset: str = "{dataset}", source: str = "{source}") -> str:
    """The small verified description of a dataset that trainings depend on."""
    return f"{RESULTS}/data/{dataset}.{source}.json"


def run_folder(run: str = "{run}") -> str:
    """Everything of one Run; `run` is <slug>.<id>."""
    return f"{RESULTS}/runs/{run}"


def train_manifest(run: str = "{run}") -> str:
    """Written last by a training: its presence says that the Run is complete."""
    return f"{run_folder(run)}/{MANIFEST}"


def model(run: str = "{run}") -> str:
    """The deployable network."""
    return f"{run_folder(run)}/{MODEL}"


def handover(run: str = "{run}") -> str:
    """What a Run leaves to those that start from it."""
    return f"{run_folder(run)}/{HANDOVER}"


def spec(run: str = "{run}") -> str:
    """Everything that the Run is, as JSON."""
    return f"{run_folder(run)}/{SPEC}"


def compact(run: str = "{run}") -> str:
    """The deployable network in a few kilobytes, where it can be packed; the dense model file follows from it."""
    return f"{run_folder(run)}/{COMPACT}"


def first_epoch(run: str = "{run}") -> str:
    """Where a Run kept its weights before training, after its first epoch, and in the end."""
    return f"{run_folder(run)}/first_epoch.json"


def history(run: str = "{run}") -> str:
    """One line per epoch of a training; complete where the manifest is there."""
    return f"{run_folder(run)}/{HISTORY}"


def state_folder(run: str = "{run}") -> str:
    """Checkpoints of a training under way; no rule declares it, so a failed job keeps it."""
    return f"{run_folder(run)}/{STATE}"


def progress(run: str = "{run}") -> str:
    """How far a training under way is, as it tells itself."""
    return f"{state_folder(run)}/{PROGRESS}"


def shard(run: str = "{run}", evaluation: str = "{evaluation}", k: int | str = "{k}", n: int | str = "{n}") -> str:
    """The result of one part of an evaluation."""
    return f"{run_folder(run)}/eval/{evaluation}/{k}-of-{n}.json"


def evaluation(run: str = "{run}", evaluation: str = "{evaluation}") -> str:
    """The merged result of an evaluation."""
    return f"{run_folder(run)}/eval/{evaluation}.json"


def security_curve(run: str = "{run}", norm: str = "{norm}") -> str:
    """Robust accuracy of a Run at several radii; `norm` is one of CURVE_NORMS."""
    return f"{run_folder(run)}/eval/curve.{norm}.json"


def frame(scale: str = "{scale}", kind: str = "{kind}") -> str:
    """All measured numbers of a scale as one frame; `kind` is one of FRAMES."""
    return f"{RESULTS}/frames/{scale}.{kind}"


def table(scale: str = "{scale}", table: str = "{table}", kind: str = "{kind}") -> str:
    """A rendered table; `kind` is one of FORMATS."""
    return f"{REPORTS}/{scale}/{table}.{kind}"


def variant(scale: str, table: str, variant: str) -> str:
    """A LaTeX table that shows other numbers than the usual one; no rule makes it."""
    return f"{REPORTS}/{scale}/variants/{table}.{variant}.tex"


def row(scale: str = "{scale}", table: str = "{table}", row: str = "{row}", kind: str = "md") -> str:
    """One rendered row; `kind` is one of FORMATS."""
    return f"{REPORTS}/{scale}/rows/{table}.{row}.{kind}"


def bench(part: str) -> str:
    """Measured speeds of training or evaluation."""
    return f"{RESULTS}/bench/{part}.json"


def figure(scale: str = "{scale}", figure: str = "{figure}", kind: str = "{kind}") -> str:
    """A drawn figure; `kind` is one of PICTURES."""
    return f"{REPORTS}/{scale}/{figure}.{kind}"


def page(scale: str = "{scale}") -> str:
    """Everything of a scale on one page."""
    return f"{REPORTS}/{scale}/index.html"


def diff(scale: str = "{scale}", kind: str = "{kind}") -> str:
    """Our numbers against the paper's; `kind` is md or csv."""
    return f"{REPORTS}/{scale}/diff.{kind}"


def claims(scale: str = "{scale}", kind: str = "{kind}") -> str:
    """The paper's claims, tested on its numbers and on ours; `kind` is md or csv."""
    return f"{REPORTS}/{scale}/claims.{kind}"


def paper_audit() -> str:
    """The paper's contradictions; no results are behind it, so it has no scale."""
    return f"{REPORTS}/paper_audit.md"


def partial(scale: str, table: str, kind: str) -> str:
    """A table rendered by hand from whatever was finished; no rule makes it."""
    return f"{REPORTS}/{scale}/partial/{table}.{kind}"


def log(rule: str, *wildcards: str) -> str:
    """The log of a job."""
    return f"{LOGS}/{rule}/{'.'.join(wildcards)}.log"
