"""The columns of the frame: name, type, meaning. docs/frame.md shows them to a reader; a test holds the two together.

Accuracies are percent, as the paper prints them. An empty entry is a number or a word that does not exist (the sparsity of a network that
is not pruned) or that no file records.
"""

from collections.abc import Iterator
from dataclasses import dataclass

TEXT, WHOLE, NUMBER, FLAG = "str", "Int64", "float64", "bool"
ATTACKS = {"apgd-ce": "after_apgd_ce", "apgd-t": "after_apgd_t", "fab-t": "after_fab_t", "square": "after_square"}


@dataclass(frozen=True, kw_only=True)
class Column:
    """`type` is the pandas type; a column of whole numbers may have empty entries."""

    name: str
    type: str
    meaning: str


def _columns(type: str, **meanings: str) -> Iterator[Column]:
    return (Column(name=name, type=type, meaning=meaning) for name, meaning in meanings.items())


COLUMNS = (
    *_columns(TEXT, scale="the scale of the plan"),
    *_columns(FLAG, comparable="whether numbers of this scale may be held against the paper's"),
    *_columns(
        TEXT,
        table="name of the table, the file in `workflow/config/tables/`",
        row="id of the row",
        column="id of the column",
        metric="what the table prints: `robust_acc` or `clean_acc`",
        method="the method's name, a file of `baselines/` or `methods/`",
        name="what the paper calls the method: Ours, Ours(fast), HYDRA, ...",
        dataset="`cifar10`, `cifar100` or `imagenet100`",
        data="the images that were attacked, in words",
        arch="architecture that was trained: `rn18`, `small_rn34_p01`, ... (a scale may rewrite the paper's)",
    ),
    *_columns(FLAG, lbn="whether the network ends in a batch norm"),
    *_columns(TEXT, precision="`fp` or `binary`"),
    *_columns(NUMBER, width="factor on all channel counts"),
    *_columns(TEXT, pruning="strategy in words: Not Pruned, Global, Dynamic, or p = ..."),
    *_columns(
        NUMBER,
        r="pruned share of the weights that the Run asks for; empty where nothing is pruned",
        p="exponent of adaptive pruning; empty where it is no number",
        a="scale of the initial scores; empty where no scores are trained",
        eps="radius of the training's attack, of 1; 0 is vanilla training",
    ),
    *_columns(TEXT, attack="the training's attack", compute="number format of the convolutions of training: `fp32` or `bf16`"),
    *_columns(WHOLE, seed="of the training", n="test images that were attacked", n_clean="of these, right as they are"),
    *_columns(WHOLE, n_robust="of these, right after all attacks; empty where nothing was attacked"),
    *_columns(
        NUMBER,
        clean="clean accuracy in percent",
        robust="robust accuracy in percent; empty where nothing was attacked",
        after_apgd_ce="accuracy in percent after APGD on the cross-entropy",
        after_apgd_t="accuracy in percent after targeted APGD as well",
        after_fab_t="accuracy in percent after targeted FAB as well",
        after_square="accuracy in percent after Square as well",
        value="the one of `clean` and `robust` that the table prints",
        low="lower end of Wilson's 95 % interval of `value`, over the test images of this seed",
        high="upper end of the same interval",
        paper="the paper's number for the cell in percent, of its own number of trainings; empty where it prints none",
        validation="accuracy in percent of the epoch that was kept, on the validation images under the attack that selects it",
    ),
    *_columns(WHOLE, best_epoch="the epoch that was kept, from 1", epochs="of the training, without those of phases that it starts from"),
    *_columns(NUMBER, sparsity="share of the convolution weights that are zero in the finished network"),
    *_columns(WHOLE, bytes="of the network's compact file, `network.rbs`; empty where the network is not pruned"),
    *_columns(
        NUMBER,
        training_seconds="wall time of the training and of the phases that it starts from",
        evaluation_seconds="time of the attacks, added over shards",
    ),
    *_columns(
        TEXT,
        engine="what computed the training: `dense` or `sparse`",
        evaluation_engine="what attacks searched on",
        trust="worst verdict of the trust panel: `pass`, `warn`, `fail` or `not applicable`; empty where nothing was attacked",
        trust_fail="checks of the panel that fail, by name, with spaces between",
        trust_warn="checks of the panel that warn",
    ),
    *_columns(WHOLE, warnings="of the attacks about this evaluation"),
    *_columns(FLAG, stale="whether code that the number depends on has changed since, or is not recorded"),
    *_columns(TEXT, run="folder of the Run below `results/runs/`: what it is, and its id", evaluation="id of the evaluation"),
)
TYPES = {column.name: column.type for column in COLUMNS}
