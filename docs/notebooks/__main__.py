"""Run the notebooks of this folder and store what they print: `python -m docs.notebooks [NAME ...] [--out FOLDER]`.

Each runs in a process and from a folder of its own choosing, as in Jupyter: cells in their order, in one namespace, the value of a last
expression shown. A Jupyter kernel is not needed, so none is installed.
"""

import argparse
import ast
import base64
import io
import os
import subprocess
import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import nbformat
from nbformat.v4 import new_output

HERE = Path(__file__).resolve().parent
NAMES = sorted(path.stem for path in HERE.glob("*.ipynb"))


def execute(notebook: nbformat.NotebookNode, name: str) -> None:
    """Run all code cells; their outputs take the place of the old ones. The first error ends it."""
    namespace: dict[str, Any] = {"__name__": "__main__"}
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    for count, cell in enumerate(cells, 1):
        printed = io.StringIO()
        with redirect_stdout(printed):
            value = _run(cell.source, namespace, f"{name}.ipynb, cell {count}")
        cell.execution_count, cell.outputs = count, []
        if printed.getvalue():
            cell.outputs.append(new_output("stream", name="stdout", text=printed.getvalue()))
        if value is not None:
            cell.outputs.append(new_output("execute_result", data=_shown(value), execution_count=count))


def _run(source: str, namespace: dict[str, Any], where: str) -> Any:
    """The value of the last expression, None where the last line is a statement (or ends in a semicolon)."""
    tree = ast.parse(source, where)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) and not source.rstrip().endswith(";") else None
    exec(compile(tree, where, "exec"), namespace)
    return None if last is None else eval(compile(ast.Expression(last.value), where, "eval"), namespace)


def _shown(value: Any) -> dict[str, str]:
    """As Jupyter shows it: text always; HTML or a picture where the value can be one."""
    data = {"text/plain": repr(value)}
    if hasattr(value, "savefig"):
        picture = io.BytesIO()
        value.savefig(picture, format="png", dpi=110, bbox_inches="tight", metadata={"Software": None})
        data["image/png"] = base64.b64encode(picture.getvalue()).decode()
    elif hasattr(value, "_repr_html_"):
        data["text/html"] = value._repr_html_()
    return data


def _one(name: str, out: Path) -> None:
    notebook = nbformat.read(HERE / f"{name}.ipynb", as_version=4)
    os.chdir(HERE)
    execute(notebook, name)
    nbformat.validate(notebook)
    out.mkdir(parents=True, exist_ok=True)
    nbformat.write(notebook, out / f"{name}.ipynb")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m docs.notebooks", description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"some of: {', '.join(NAMES)} (default: all)")
    parser.add_argument("--out", type=Path, default=HERE, metavar="FOLDER", help="where to store them (default: where they are)")
    options = parser.parse_args()
    if unknown := set(options.names) - set(NAMES):
        parser.error(f"no notebook is called {', '.join(sorted(unknown))}; allowed: {', '.join(NAMES)}")
    names, out = options.names or NAMES, options.out.resolve()
    if len(names) == 1:
        _one(names[0], out)
        return 0
    command = [sys.executable, "-m", "docs.notebooks", "--out", str(out)]
    return max(subprocess.run([*command, name], check=False, cwd=HERE.parents[1]).returncode for name in names)


if __name__ == "__main__":
    sys.exit(main())
