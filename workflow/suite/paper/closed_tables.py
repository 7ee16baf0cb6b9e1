"""The two tables of the paper that need no training: FLOPs of a block, and the small networks. Derived, beside what the paper prints."""

import csv
import io
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from tabulate import tabulate

from workflow.suite.paper import resnet, theory
from workflow.suite.paper.claims.evidence import Paper
from workflow.suite.paper.claims.formulas import flops
from workflow.suite.tables import inert, latex_frame

# As the complexity table prints them: full precision, binary.
FORMULAS = {
    "forward, training": ("2(1-r)c^2s^2r_{in}r_{out} + 11s^2r_{out}", "(1-r)c^2s^2r_{in}r_{out} + 11s^2r_{out}"),
    "forward, evaluation": ("2(1-r)c^2s^2r_{in}r_{out} + 4s^2r_{out}", "(1-r)c^2s^2r_{in}r_{out} + 4s^2r_{out}"),
    "backward, training": ("4(1-r)c^2s^2r_{in}r_{out} + 4s^2r_{out} + c^2r_{in}r_{out}", "3(1-r)c^2s^2r_{in}r_{out} + 4s^2r_{out}"),
}


@dataclass(frozen=True, kw_only=True)
class ClosedTable:
    """A small table of texts; `formulas` says which columns are mathematics."""

    name: str
    title: str
    caption: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    formulas: tuple[int, ...] = ()

    def markdown(self, made_by: str) -> str:
        lines = [[f"${cell}$" if i in self.formulas and cell else cell for i, cell in enumerate(row)] for row in self.rows]
        grid = tabulate(lines, self.heads, tablefmt="pipe", disable_numparse=True)
        return "\n\n".join([f"# {self.title}", self.caption, grid, f"*{made_by}*"]) + "\n"

    def latex(self, made_by: str) -> str:
        def line(row: tuple[str, ...]) -> str:
            cells = [f"${cell}$" if i in self.formulas and cell else inert.latex(cell) for i, cell in enumerate(row)]
            return " & ".join(cells) + r" \\"

        heads = " & ".join(map(_stacked, self.heads)) + r" \\"
        start = rf"\begin{{tabular}}{{l{'c' * (len(self.heads) - 1)}}}"
        return latex_frame.frame(
            [start, r"\toprule", heads, r"\midrule", *map(line, self.rows), r"\bottomrule", r"\end{tabular}"],
            name=self.name,
            caption=f"{self.title}.",
            label=f"tbl:{self.name}",
            notes=[self.caption],
            made_by=made_by,
            size=r"\scriptsize",
        )

    def sheet(self) -> str:
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows([map(inert.csv_entry, row) for row in (self.heads, *self.rows)])
        return text.getvalue()


def _stacked(head: str) -> str:
    """A head of two lines where it has two parts, so that the table fits on a page."""
    parts = [inert.latex_math(part) for part in re.split(r"(?<=,) | (?=\()", head)]
    return parts[0] if len(parts) == 1 else r"\shortstack{" + r" \\ ".join(parts) + "}"


def complexity(paper: Paper) -> ClosedTable:
    """FLOPs of the example block and of RN34, binary against full precision."""
    facts = paper.printed["complexity"]
    block, rows = theory.Block(**facts["block"]), []
    for name, ratio in block.ratios().items():
        cost = block.backward if name.startswith("backward") else partial(block.forward, training=name.endswith("training"))
        saved = f"{100 * (1 - ratio):.2f}"
        numbers = (f"{cost(binary=False):.0f}", f"{cost(binary=True):.0f}", f"{ratio:.4f}", f"{facts['ratios'][name]:.4f}", saved)
        rows.append((f"Block: {name}", *FORMULAS[name], *numbers, str(facts["savings"][name])))
    for name, value in flops(paper).items():
        rows.append((f"RN34: {name}", "", "", "", "", "", "", f"{value:.2f}", str(facts["network"].get(name, ""))))
    heads = ("", "Full precision", "Binary", "FLOPs FP", "FLOPs binary", "Ratio", "Ratio (paper)", "Saved %", "Saved % (paper)")
    example, headline = facts["block"], paper.printed["headline"]
    caption = (
        f"Operations of a sparse convolution-batch norm-ReLU block: kernel c = {example['kernel']}, map s = {example['size']},"
        f" {example['channels_in']} channels in and {example['channels_out']} out, r = {example['sparsity']}. Below, the same summed over"
        f" the blocks of RN34 at 32 x 32, r = {headline['sparsity']} and p = {headline['p']}. The paper quotes its two network numbers for"
        " training and evaluation; they are those of the forward and the backward pass of training."
    )
    return ClosedTable(
        name="complexity",
        title="Complexity of binary and full-precision blocks",
        caption=caption,
        heads=heads,
        rows=tuple(rows),
        formulas=(1, 2),
    )


def small_networks(paper: Paper) -> ClosedTable:
    """Widths and parameters of the small dense networks, derived from adaptive pruning."""
    full, headline, columns = paper.printed["network"], paper.printed["headline"], []
    for net in paper.printed["small_networks"]:
        exact = resnet.widths(full, sparsity=headline["sparsity"], p=net["p"])
        exact = [exact[0], *exact]  # conv1 has the channels of the first stage
        rounded = [round(width) for width in exact]
        count = resnet.parameters(small(full, rounded), affine=True)
        texts = [f"{width:.2f}" for width in exact], [str(width) for width in rounded], [str(width) for width in net["widths"]]
        columns += [[*texts[0], ""], [*texts[1], str(count)], [*texts[2], str(net["parameters"])]]
    names = ["conv1", *(f"Block{stage} x {blocks}" for stage, blocks in enumerate(full["blocks"], 1)), "#params"]
    labels = [net["label"] for net in paper.printed["small_networks"]]
    heads = ("Layer", *(f"{label}, {kind}" for label in labels for kind in ("exact", "rounded", "paper")))
    caption = (
        f"Dense networks with layers as large as those of {full['name']} pruned at r = {headline['sparsity']}: output channels are"
        " sqrt(m/9) for the m weights that an equal-channel 3x3 layer of the stage keeps, no layer keeping more than it has. Parameters"
        " include the scales and shifts of batch norm and no classifier bias, which is how the paper's counts come out."
    )
    return ClosedTable(
        name="smallnet", title="Small RN34 variants", caption=caption, heads=heads, rows=tuple(zip(names, *columns, strict=True))
    )


def small(full: Mapping[str, Any], widths: list[int]) -> dict[str, Any]:
    """The full network with other channel counts; conv1 has those of the first stage."""
    return {**full, "channels": widths[1:]}


TABLES: Mapping[str, Callable[[Paper], ClosedTable]] = {"complexity": complexity, "smallnet": small_networks}
