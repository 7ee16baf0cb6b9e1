"""Cells as evidence: what has a number, what has none, and what is still to come."""

import dataclasses
from pathlib import Path

from workflow.suite.paper.claims import catalogue, evidence
from workflow.suite.planning import plan
from workflow.suite.results import cells


def test_states_of_cells(repository, finish):
    demo = plan.load("demo", data_root=Path("none"), root=repository)
    finish(demo, demo.cells["small.other.binary"].runs[0], n_clean=40, n_robust=16)
    frame = cells.of_results(demo, demo.tables, finish.folder)
    states = frame["state"].to_dict()
    assert states["small.other.binary"] == "number"
    assert frame.loc["small.other.binary", "value"] == 25.0
    assert states["small.ref.fp"] == "pending", "not run yet"
    assert states["small.later.fp"] == "pending", "planned, but its method is not there"
    assert demo.cells["small.later.fp"].unavailable
    assert states["small.ours.fp"] == "none", "does not apply"


def test_cells_that_are_not_available_forbid_a_verdict(tmp_path):
    """Claims that need ImageNet have no verdict where it is not there, whatever the other cells say."""
    full = plan.load("paper", data_root=tmp_path)
    lost = {a: dataclasses.replace(c, runs=(), unavailable="no data") for a, c in full.cells.items() if c.column.startswith("imagenet")}
    ours = evidence.of_results(dataclasses.replace(full, cells={**full.cells, **lost}), tmp_path)
    printed = evidence.of_paper(full.tables).cells["value"]
    state = ours.cells["state"].where(ours.cells.index.isin(lost) | (ours.cells["state"] == "none"), "number")
    assert set(state[[address for address, cell in lost.items() if not cell.not_applicable]]) == {"pending"}
    complete = dataclasses.replace(ours, cells=ours.cells.assign(value=printed.fillna(50.0), state=state))
    claims = {item.id: item for item in catalogue.claims()}
    for id in ("C25", "C26", "C31", "C33", "C67", "C68", "C70"):
        assert claims[id].judge(complete).verdict == "not run"
    assert claims["C01"].test(complete)[0].answer(lambda leaf: leaf.plain) is True
