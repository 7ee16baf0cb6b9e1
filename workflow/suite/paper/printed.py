"""What the paper prints outside its results tables, read from workflow/config/paper.yaml."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from methods.core.errors import UserError
from workflow.suite.planning import schema
from workflow.suite.planning.config import CONFIG

KEYS = frozenset(
    {"network", "headline", "small_networks", "complexity", "random_pruning", "last_layer", "kept_in_conv1", "times_parameters"}
    | {"wide_network", "pictures", "small_row", "captions", "settings", "normalised_gradient", "algorithms"}
)


def load(folder: Path = CONFIG) -> Mapping[str, Any]:
    """The printed facts by name."""
    path = folder / "paper.yaml"
    values = schema.read_yaml(path)
    missing, unknown = sorted(KEYS - set(values)), sorted(set(values) - KEYS)
    if missing or unknown:
        wrong = f"misses {', '.join(missing)}" if missing else f"unknown key '{unknown[0]}'; allowed: {', '.join(sorted(KEYS))}"
        raise UserError(f"workflow/config/{path.name}: {wrong}")
    return values
