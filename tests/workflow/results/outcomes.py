"""Evaluations of cells with chosen answers, image by image."""

from methods.core import paths, sealed

N = 1000


def right(*spans):
    """Outcomes of N images: right on these spans, broken by the attack elsewhere."""
    hit = {i for start, stop in spans for i in range(start, stop)}
    return "".join("0" if i in hit else "2" for i in range(N))


def write(planned, folder, address, *seeds, data="the images"):
    """Evaluations of a cell, one per seed."""
    cell = planned.cells[address]
    for run, examples in zip(cell.runs, seeds, strict=True):
        path = folder / paths.evaluation(run, planned.evaluations[run].id)
        path.parent.mkdir(parents=True, exist_ok=True)
        hits, n = examples.count("0"), len(examples)
        facts = {"n": n, "clean_acc": 0.9, "n_clean": 900, "robust_acc": hits / n, "n_robust": hits, "data": data}
        sealed.write(path, {**facts, "broken_by": {"codes": ["none", "clean", "apgd-ce"], "examples": examples}})
