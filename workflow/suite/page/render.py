"""The page as a file."""

import base64
import hashlib
import io
import json
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from PIL import Image, UnidentifiedImageError

from methods.core import files, paths
from methods.core.errors import UserError
from methods.core.revision import made_by
from workflow.suite.figures import catalogue
from workflow.suite.page import filters, sheets, tables
from workflow.suite.page.details import Shelf
from workflow.suite.planning.plan import Plan
from workflow.suite.results import status
from workflow.suite.tables import caption

ASSETS = Path(__file__).parent


def write(plan: Plan, folder: Path = Path()) -> Path:
    """Write the page from whatever is finished under `folder`."""
    path = folder / paths.page(plan.scale.name)
    files.write(path, page(plan, folder, made_by=made_by()))
    return path


def page(plan: Plan, folder: Path, *, made_by: str) -> str:
    """The whole page; it refers to nothing outside itself but the files of results and logs that it links to."""
    verdicts, names = sheets.cell_verdicts(plan, folder), filters.cells(*plan.tables.values())
    shown = [tables.results(plan, name, folder, verdicts) for name in plan.tables]
    cells = [cell for table in shown for row in table["rows"] for cell in row["cells"]]
    checked = [sheet for sheet in (sheets.differences(plan, folder), sheets.claims(plan, folder)) if sheet]
    said = [word for table in shown for row in table["rows"] for word in row["verdicts"]]
    said += [word for sheet in checked for line in sheet.lines for word in line.verdicts]
    look = Environment(loader=FileSystemLoader(ASSETS), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    return look.get_template("template.html").render(
        scale=plan.scale.name,
        comparable=plan.scale.comparable,
        comparability=caption.comparability(plan),
        counts=status.of_tables(plan, folder),
        statuses=status.STATUSES,
        tables=shown,
        figures=[figure(plan, name, folder) for name in catalogue.FIGURES],
        closed=sheets.closed(plan, folder),
        sheets=checked,
        audit=Shelf(plan=plan, folder=folder).links({"Paper audit": paths.paper_audit()}),
        methods=sorted({name.method for name in names.values() if name.method}, key=str.casefold),
        choices=filters.choices(said),
        judged=bool(verdicts),
        tied=caption.TIED,
        doubts=list(dict.fromkeys(text for table in shown for text in table["doubts"])),
        details=_inline({cell["address"]: {"name": cell["name"], "lines": cell["lines"]} for cell in cells}),
        style=_asset("style.css"),
        script=_asset("script.js"),
        search=_asset("search.js"),
        allowed={name: _digest(_asset(name)) for name in ("style.css", "script.js", "search.js")},
        made_by=made_by,
    )


def figure(plan: Plan, name: str, folder: Path) -> dict[str, Any]:
    """A figure with its picture inside, or why it has none."""
    about, path = catalogue.find(name), folder / paths.figure(plan.scale.name, name, "png")
    words = {"name": name, "title": about.title, "about": about.about, "paper": about.paper}
    if not path.is_file():
        why = "not drawn yet" if about.inputs(plan, folder) else about.how
        return words | {"picture": None, "why": why}
    content = path.read_bytes()
    try:
        with Image.open(io.BytesIO(content)) as image:
            size, description = image.size, image.text["Description"]
    except (UnidentifiedImageError, OSError, KeyError, AttributeError) as error:
        raise UserError(f"{path}: is not a figure of this suite ({error!r}); delete it and draw it again") from None
    picture = base64.b64encode(content).decode()
    return words | {"picture": picture, "description": description, "width": size[0], "height": size[1]}


def _asset(name: str) -> str:
    """The text of an element that holds a whole file, line breaks around it included."""
    return f"\n{(ASSETS / name).read_text(encoding='utf-8')}\n"


def _digest(text: str) -> str:
    """What the content security policy calls a text: only the page's own script and style are allowed, so another would not run even if
    it came in."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _inline(values: Any) -> str:
    """JSON that cannot end the script element it stands in."""
    return json.dumps(values, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
