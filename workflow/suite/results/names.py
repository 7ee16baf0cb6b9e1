"""How the paper calls what a Run's keys say: method, network, pruning, data set. Read from keys, never from the labels of a table."""

import re
from collections.abc import Mapping

from methods.core.run_spec import get

# Method and its option -> the paper's name. Its adversarial training of binary networks is BinaryConnect's.
METHODS = {"at": "AT", "binaryconnect": "AT", "trades": "TRADES", "bcs": "BCS", "rst": "RST", "hydra": "HYDRA", "atmc": "ATMC"}
METHODS |= {"flyingbird": "FlyingBird", "binary_subnet": "Ours"}
OURS = ("Ours", "Ours(fast)")
DATASETS = {"cifar10": "CIFAR10", "cifar100": "CIFAR100", "imagenet100": "ImageNet100"}
ARCH = re.compile(r"(?P<small>small_)?rn(?P<depth>\d+)(?:_p(?P<p>\d\d))?")


def method(keys: Mapping) -> str | None:
    """A method that the paper does not know keeps its own name."""
    name = keys.get("method")
    if name == "flyingbird" and get(keys, "options.plus"):
        return "FlyingBird+"
    if name == "binary_subnet" and get(keys, "attack.name") == "fgsm_atta":
        return OURS[1]
    return METHODS.get(name, name)


def arch(name: str) -> str:
    """rn34 -> RN34, small_rn34_p01 -> Small RN34-p0.1; another name stays."""
    parts = ARCH.fullmatch(name)
    if parts is None:
        return name
    strategy = f"-p{parts['p'][0]}.{parts['p'][1]}" if parts["p"] else ""
    return f"{'Small ' if parts['small'] else ''}RN{parts['depth']}{strategy}"


def network(keys: Mapping) -> str | None:
    """Architecture and last batch norm; `None` where a table leaves the architecture to the method."""
    if "arch" not in keys:
        return None
    return arch(keys["arch"]) + ("-LBN" if keys.get("lbn") else "")


def pruning(keys: Mapping) -> str:
    """What decides how many weights a layer keeps."""
    if keys.get("sparsity") is None:
        return "Not Pruned"
    p = keys.get("p")
    return "Dynamic" if p is None else "Global" if p == "global" else f"p = {p}"
