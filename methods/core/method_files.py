"""Where each method lies: methods/binary_subnet.py, the files and folders of baselines/, and modules of installed packages.

A package offers a method by an entry point of the group `robust_binary_subnets.methods`, whose name is the method's and whose value is the
module that has its RECIPE and METHOD. Modules are located, not imported: planning stays free of torch.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path

from methods.core.errors import UserError
from methods.core.revision import ROOT

GROUP = "robust_binary_subnets.methods"
OWN = "binary_subnet"


@dataclass(frozen=True, kw_only=True)
class MethodFile:
    """A method: the module that defines it, its file, and the package that offers it (None: this repository)."""

    name: str
    module: str
    path: Path
    package: str | None = None


def located(root: Path = ROOT) -> dict[str, MethodFile]:
    """Every method by name. A package cannot take the name of a method of the repository."""
    methods = {}
    for path in (*root.glob(f"methods/{OWN}.py"), *sorted([*root.glob("baselines/[a-z]*.py"), *root.glob("baselines/[a-z]*/__init__.py")])):
        parts = path.relative_to(root).with_suffix("").parts[:2]  # the folder, and the file or folder in it
        methods[parts[1]] = MethodFile(name=parts[1], module=".".join(parts), path=path)
    for entry in sorted(entry_points(group=GROUP), key=lambda entry: entry.name):
        package = entry.dist.name if entry.dist is not None else entry.module
        if entry.name in methods:
            taken = methods[entry.name]
            raise UserError(
                f"package '{package}' offers a method '{entry.name}', a name that {taken.package or taken.path.relative_to(root)} has;"
                f" change the entry point of {GROUP} in that package, or uninstall it"
            )
        methods[entry.name] = MethodFile(name=entry.name, module=entry.module, path=_file(entry.module, package), package=package)
    return methods


def locate(name: str, root: Path = ROOT) -> MethodFile:
    """The method of that name."""
    methods = located(root)
    if name not in methods:
        raise UserError(f"unknown 'method: {name}'; allowed: {', '.join(methods)}, or what an installed package offers as {GROUP}")
    return methods[name]


def _file(module: str, package: str) -> Path:
    try:
        spec = find_spec(module)
    except ImportError:
        spec = None
    if spec is None or spec.origin is None or not spec.origin.endswith(".py"):
        raise UserError(f"package '{package}' offers methods of module '{module}' as {GROUP}, which is not a Python file that can be found")
    return Path(spec.origin)
