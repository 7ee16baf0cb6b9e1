"""Commands that render what is finished: show, curve, render, figures, page, partial, report, findings."""

import argparse
from collections.abc import Iterable
from pathlib import Path

from methods.core import files, paths
from methods.core.errors import UserError
from workflow.suite.commands.command import Add
from workflow.suite.planning import plan
from workflow.suite.results.show import runs_of, show
from workflow.suite.tables import caption


def add(command: Add) -> None:
    """The commands of this module."""
    about = command("show", _show, "A cell, a row or a Run in full.")
    about.add_argument("what", help="table.row.column, table.row, table, or a Run's id (or the start of it)")
    curve = command("curve", _curve, "The learning curve of a Run with the phases before it, as text or as a picture.")
    curve.add_argument("what", help="a Run's id (or the start of it), its folder's name, or table.row.column for all seeds of a cell")
    curve.add_argument("--out", type=Path, metavar="FILE.png", help=f"also draw it; one of: {', '.join(paths.PICTURES)}")
    render = command("render", _render, "Render tables from whatever is finished, without running anything.")
    render.add_argument("--table", help="only this table")
    beside = "to reports/<scale>/variants/, which leaves the usual tables as they are"
    render.add_argument("--ours", action="store_true", help=f"LaTeX of our numbers alone, without the paper's, {beside}")
    render.add_argument("--with-intervals", action="store_true", help=f"LaTeX with the interval of each of our numbers, {beside}")
    figures = command("figures", _figures, "Draw figures from whatever is finished, without running anything.")
    figures.add_argument("--figure", help="only this figure")
    command("page", _page, "Write the page of a scale from whatever is finished, without running anything.")
    partial = command("partial", _partial, "A table from whatever is finished, on standard output, without running anything.")
    partial.add_argument("table", help="the table's name")
    partial.add_argument("--write", action="store_true", help="write all formats to reports/<scale>/partial/ instead")
    command("report", _report, "Everything of a scale from whatever is finished: tables, figures, differences, claims, frame, page.")
    command("findings", _findings, "Write docs/findings.md and the README's results: what a scale says of the claims.")


def _show(planned: plan.Plan, options: argparse.Namespace) -> str:
    return show(planned, options.what, options.directory)


def _curve(planned: plan.Plan, options: argparse.Namespace) -> str:
    from workflow.suite.results import curve_text, history

    courses, waiting = history.of_runs(planned, [run.name for run in runs_of(planned, options.what)], options.directory)
    text = "\n\n".join([*map(curve_text.of_courses, courses), *(f"{run}: not trained yet" for run in waiting)])
    if options.out is None:
        return text
    from workflow.suite.figures import run_curve, style  # plotting libraries are slow to load, and only needed here

    if (kind := options.out.suffix.removeprefix(".")) not in paths.PICTURES:
        raise UserError(f"--out {options.out}: '{kind}' is no kind of picture; allowed: {', '.join(paths.PICTURES)}")
    with style.look():
        picture = run_curve.draw(courses, options.what, caption.comparability(planned))
        files.write(options.out, style.files_of(picture, options.what)[kind])
    return f"{text}\n\n{options.out}"


def _render(planned: plan.Plan, options: argparse.Namespace) -> str:
    from workflow.suite.tables import latex, render  # pandas: slow to import, and only needed here

    names = [planned.table(options.table).name] if options.table else list(planned.tables)
    variant = latex.Variant(paper=not options.ours, intervals=options.with_intervals)
    if variant.name:
        return "\n".join(str(render.write_variant(planned, name, variant, options.directory)) for name in names)
    return _tables(planned, names, options.directory)


def _tables(planned: plan.Plan, names: Iterable[str], folder: Path) -> str:
    from workflow.suite.tables import render  # pandas: slow to import, and only needed here

    return "\n".join(str(path) for name in names for path in render.write_table(planned, name, folder))


def _figures(planned: plan.Plan, options: argparse.Namespace) -> str:
    from workflow.suite.figures import catalogue

    if options.figure:
        return "\n".join(map(str, catalogue.write(planned, options.figure, options.directory)))
    return _every_figure(planned, options.directory)


def _every_figure(planned: plan.Plan, folder: Path) -> str:
    from workflow.suite.figures import catalogue

    lines = []
    for name in catalogue.FIGURES:
        try:
            lines += map(str, catalogue.write(planned, name, folder))
        except UserError as reason:
            lines.append(f"{name}: not drawn: {reason}")
    return "\n".join(lines)


def _page(planned: plan.Plan, options: argparse.Namespace) -> str:
    from workflow.suite.page import render

    return str(render.write(planned, options.directory))


def _partial(planned: plan.Plan, options: argparse.Namespace) -> str:
    from workflow.suite.tables import render

    if options.write:
        return "\n".join(map(str, render.write_table(planned, options.table, options.directory, where=paths.partial)))
    return render.as_markdown(planned, options.table, options.directory)


def _report(planned: plan.Plan, options: argparse.Namespace) -> str:
    from workflow.suite.paper import checks, closed_tables
    from workflow.suite.tables import render

    parts = [_tables(planned, planned.tables, options.directory)]
    parts += ["\n".join(map(str, checks.write_closed(planned, name, options.directory))) for name in closed_tables.TABLES]
    parts.append(_every_figure(planned, options.directory))
    writers = (checks.write_diff, checks.write_claims, checks.write_audit, render.write_frame)
    parts += ["\n".join(map(str, write(planned, options.directory))) for write in writers]
    return "\n".join([*parts, _page(planned, options)])


def _findings(planned: plan.Plan, options: argparse.Namespace) -> str:
    from workflow.suite.paper import findings, headline

    return "\n".join(str(write(planned, options.directory)) for write in (findings.write, headline.write))
