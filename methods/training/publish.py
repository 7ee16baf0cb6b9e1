"""The results of a run in its folder: published all at once or not at all, and read by the runs that start from them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from methods.core import paths, sealed
from methods.core.errors import UserError
from methods.core.files import write
from methods.data.load import Data
from methods.networks import compact
from methods.networks.model_file import load_tensors, save_model, save_tensors
from methods.training.method import Method
from methods.training.outcome import Outcome

RESULTS = (paths.SPEC, paths.HISTORY, paths.MODEL, paths.COMPACT, paths.HANDOVER, paths.MANIFEST)


def publish(out: Path, data: Data, outcome: Outcome, method: Method, made_by: Mapping[str, Any]) -> None:
    """Write the results of a network that is what its run declares; the manifest comes last: a folder with a manifest is complete."""
    best, spec = outcome.best, method.spec
    method.check_declared(best["tensors"], best["report"])
    write(out / paths.SPEC, json.dumps(spec, indent=2, sort_keys=True) + "\n")
    history = "".join(json.dumps(record) + "\n" for record in outcome.history)
    write(out / paths.HISTORY, history)
    manifest = {
        "spec": spec,
        "data": {"label": data.label, "fingerprint": data.fingerprint, "train": len(data.train), "val": len(data.val)},
        "epochs": len(outcome.history),
        "best_epoch": best["epoch"],
        "validation_robust": best["robust"],
        "report": best["report"],
        "model_sha256": save_model(method.net, spec, out / paths.MODEL, best["tensors"]),
        "history_sha256": hashlib.sha256(history.encode()).hexdigest(),
        "bytes": pack(method, best["tensors"], out / paths.COMPACT),
        "provenance": made_by,
    }
    silent = sum(int((t == torch.inf).sum()) for name, t in best["tensors"].items() if name.endswith("running_var"))
    if silent:
        manifest["silent_channels"] = silent  # their variance overflowed: see methods.networks.model_file.sound
    if outcome.handed_over:
        manifest["handover_sha256"] = save_tensors(outcome.handed_over, out / paths.HANDOVER)
    sealed.write(out / paths.MANIFEST, manifest)


def pack(method: Method, tensors: dict[str, Tensor], path: Path) -> int | None:
    """Write the network as a compact file; returns its bytes, or None for a dense network, which has no such file."""
    try:
        return compact.pack(method.net, method.spec, path, tensors)
    except compact.Unfit:
        path.unlink(missing_ok=True)  # of an earlier training in this folder
        return None


def remove_halves(out: Path) -> None:
    """Remove halves of files that were being written when their process was killed."""
    for name in RESULTS:
        for half in out.glob(f".{name}.*"):
            half.unlink()


def finished(out: Path, spec: dict[str, Any], files: dict[str, str]) -> bool:
    """Whether a complete result of this spec and of the code in these files lies there."""
    try:
        manifest = sealed.read(out / paths.MANIFEST)
        sealed.require(out / paths.MODEL, manifest["model_sha256"])
        return manifest["spec"] == spec and manifest["provenance"]["files"] == files
    except (UserError, KeyError):
        return False


def handed_over(out: Path, parent: str | None) -> dict[str, Tensor] | None:
    """State that the parent run, whose folder is a sibling, has published for its children."""
    if parent is None:
        return None
    folders = [folder for folder in out.parent.glob(f"*.{parent}") if (folder / paths.MANIFEST).exists()]
    if len(folders) != 1:
        raise UserError(f"{out.parent}: the parent run {parent} is not finished there (found {len(folders)} folders named *.{parent})")
    path = folders[0] / paths.HANDOVER
    sealed.require(path, sealed.read(folders[0] / paths.MANIFEST).get("handover_sha256"))
    return load_tensors(path)[0]
