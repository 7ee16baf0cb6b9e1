"""Command line of the suite: python -m workflow.suite status | show | plan | rows | render | figures | page | partial | diff | claims."""

import argparse
import sys
from collections import Counter
from pathlib import Path

from tabulate import tabulate

from methods.core import paths
from methods.core.errors import UserError
from methods.core.revision import made_by
from workflow.suite.planning import config, plan, selection
from workflow.suite.results import standing, status
from workflow.suite.results.show import show


def main(arguments: list[str] | None = None) -> int:
    """Run a command; wrong input is one line on stderr and exit code 2."""
    options = _parser().parse_args(arguments)
    try:
        suite = config.load_suite()
        root = Path(options.data_root) if options.data_root else suite.data_root
        planned = plan.load(options.scale or suite.scale, data_root=root, seeds=options.seeds or suite.seeds)
        result = options.run(planned, options)
        text, code = result if isinstance(result, tuple) else (result, 0)
        print(text)
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except BrokenPipeError:  # the reader (head, less) has seen enough
        sys.stderr.close()
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m workflow.suite", description="What is planned, what is done, and where it lies.")
    shared = argparse.ArgumentParser(add_help=False)
    shared.add_argument("--scale", help=f"one of: {', '.join(config.names('scales'))} (default: that of suite.yaml)")
    shared.add_argument("--data-root", help="where full datasets lie (default: that of suite.yaml)")
    shared.add_argument("--seeds", type=_seeds, metavar="1,2,3", help="in the place of the scale's (default: those of suite.yaml, if any)")
    shared.add_argument("--directory", type=Path, default=Path(), help="where results/ and reports/ lie (default: here)")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def add(name: str, run, text: str) -> argparse.ArgumentParser:
        command = commands.add_parser(name, help=text, description=text, parents=[shared])
        command.set_defaults(run=run)
        return command

    add("status", _status, "How far every table and Run is: what runs and for how long, what failed and why.")
    cost = add("cost", _cost, "Device-hours per table and in total, before anything is run.")
    cost.add_argument("--table", help="only this table")
    cost.add_argument("--gpu", metavar="NAME", help="a device of workflow/config/devices.yaml, with assumed figures")
    cost.add_argument(
        "--probe", type=Path, metavar="FILE", help=f"what methods.probe measured (default: {paths.bench('probe')} if it is there)"
    )
    add("show", _show, "A cell, a row or a Run in full.").add_argument(
        "what", help="table.row.column, table.row, table, or a Run's id (or the start of it)"
    )
    add("plan", _plan, "Every Run of the plan, and the counts.").add_argument("--table", help="only the Runs of this table")
    add("rows", _rows, "Every row with the file that `snakemake --cores N FILE` makes for it.").add_argument(
        "--table", help="only the rows of this table"
    )
    add("render", _render, "Render tables from whatever is finished, without running anything.").add_argument(
        "--table", help="only this table"
    )
    add("figures", _figures, "Draw figures from whatever is finished, without running anything.").add_argument(
        "--figure", help="only this figure"
    )
    add("page", _page, "Write the page of a scale from whatever is finished, without running anything.")
    partial = add("partial", _partial, "A table from whatever is finished, on standard output, without running anything.")
    partial.add_argument("table", help="the table's name")
    partial.add_argument("--write", action="store_true", help="write all formats to reports/<scale>/partial/ instead")
    diff = add("diff", _diff, "Our numbers against the paper's; or, given A and B, the results B against the results A.")
    diff.add_argument("sets", nargs="*", metavar="A B", help="two of: a scale, a .parquet frame, a folder that holds results/")
    diff.add_argument("--table", help="only this table")
    diff.add_argument("--strict", action="store_true", help="exit code 1 unless every number is reproduced")
    add(
        "targets", _targets, "The evaluations behind cells, for Snakemake: `snakemake --cores 8 $(... targets 'sp_ratio.*.r99')`."
    ).add_argument(
        "patterns", nargs="+", metavar="PATTERN", help="table.row.column with * for anything, in the order in which they are wanted"
    )
    add("export", _export, "Finished Runs of a scale as one archive with checksums: networks, manifests, outcomes.").add_argument(
        "archive", type=Path, help="the .zip to write"
    )
    add("import", _import, "Put the Runs of an exported archive in their places; nothing of your own is overwritten.").add_argument(
        "archive", type=Path, help="a .zip that `export` wrote"
    )
    add("claims", _claims, "The paper's claims, tested on its numbers and on ours.")
    add("deviations", _deviations, "Write docs/deviations.md from the recipes: where a method departs from its official code.")
    return parser


def _seeds(text: str) -> tuple[int, ...]:
    words = text.strip("[]").split(",")
    if len(set(words)) < len(words) or not all(word.isascii() and word.isdecimal() for word in words):
        raise argparse.ArgumentTypeError(f"'{text}' is not a list of different seeds such as 1,2,3")
    return tuple(map(int, words))


def _status(planned: plan.Plan, options: argparse.Namespace) -> str:
    runs = standing.of_runs(planned, options.directory)
    counts = {name: standing.of_cells(planned, name, runs) for name in planned.tables}
    lines = [[name, *(count[key] for key in standing.CELLS)] for name, count in counts.items()]
    lines.append(["all", *(sum(count[key] for count in counts.values()) for key in standing.CELLS)])
    stages = Counter(item.stage for item in runs.values())
    parts = [f"scale {planned.scale.name}", tabulate(lines, ["table", *standing.CELLS])]
    parts.append("Runs: " + ", ".join(f"{stages[key]} {key}" for key in standing.STAGES))
    for stage in ("training", "evaluating", "failed", "stopped"):
        parts += [f"{stage}: {run}: {item.note}" for run, item in runs.items() if item.stage == stage]
    why = Counter(item.note for item in runs.values() if item.stage == "stale")
    parts += [f"stale, {number} runs: {note}" for note, number in why.most_common(5)]
    parts += [f"not available, {number} cells: {reason}" for reason, number in status.reasons(planned).most_common()]
    return "\n".join(parts)


def _cost(planned: plan.Plan, options: argparse.Namespace) -> str:
    from workflow.suite.cost import devices
    from workflow.suite.cost import report as cost  # numpy: slow to import, and only needed here

    if options.gpu and options.probe:
        raise UserError("--gpu and --probe are two sources of one figure; give one of them")
    found = options.directory / paths.bench("probe")
    suite = config.load_suite()
    if options.gpu:
        device = devices.named(options.gpu)
    elif options.probe or found.is_file():
        device = devices.probed(options.probe or found)
    else:
        device = devices.named(suite.gpu if planned.scale.require_gpu else "cpu")
    root = Path(options.data_root) if options.data_root else suite.data_root
    return cost.report(planned, device, options.table, options.directory, also=plan.load("demo", data_root=root))


def _show(planned: plan.Plan, options: argparse.Namespace) -> str:
    return show(planned, options.what, options.directory)


def _plan(planned: plan.Plan, options: argparse.Namespace) -> str:
    final = planned.final_runs(options.table)
    runs = list(dict.fromkeys(run.name for name in final for run in reversed(planned.lineage(name))))
    lines = [f"{name}  {standing.of_run(planned, name, options.directory).stage}" for name in runs]
    cells = [cell for cell in planned.cells.values() if options.table in (None, cell.table)]
    numbers = sum(cell.reported.value is not None for cell in cells)
    lost = sum(cell.unavailable is not None for cell in cells)
    lines.append(
        f"{len(cells)} cells, {numbers} numbers of the paper; {len(final)} distinct final Runs, {len(runs)} trainings"
        f" with their parents; {lost} cells not available"
    )
    return "\n".join(lines)


def _rows(planned: plan.Plan, options: argparse.Namespace) -> str:
    tables = [planned.table(options.table)] if options.table else planned.tables.values()
    lines = [[paths.row(planned.scale.name, table.name, row.id), " | ".join(row.labels)] for table in tables for row in table.rows]
    return tabulate(lines, tablefmt="plain")


def _render(planned: plan.Plan, options: argparse.Namespace) -> str:
    from workflow.suite.tables import render  # pandas: slow to import, and only needed here

    names = [planned.table(options.table).name] if options.table else list(planned.tables)
    return "\n".join(str(path) for name in names for path in render.write_table(planned, name, options.directory))


def _figures(planned: plan.Plan, options: argparse.Namespace) -> str:
    from workflow.suite.figures import catalogue

    if options.figure:
        return "\n".join(map(str, catalogue.write(planned, options.figure, options.directory)))
    lines = []
    for name in catalogue.FIGURES:
        try:
            lines += map(str, catalogue.write(planned, name, options.directory))
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


def _diff(planned: plan.Plan, options: argparse.Namespace) -> tuple[str, int]:
    from workflow.suite.results import compare, result_sets
    from workflow.suite.tables import diff_text

    if len(options.sets) not in (0, 2):
        raise UserError(f"diff takes no set of results, or two; it was given {len(options.sets)}")
    table = planned.table(options.table).name if options.table else None
    if options.sets:
        root = Path(options.data_root) if options.data_root else config.load_suite().data_root
        first, second = (result_sets.load(text, planned, folder=options.directory, data_root=root) for text in options.sets)
        found = result_sets.diff(first, second, table)
        text = diff_text.of_sets(first, second, found)
    else:
        found = compare.compare(planned, options.directory, table)
        text = diff_text.of_plan(planned, found, made_by=made_by())
    return text, int(options.strict and not compare.reproduced(found))


def _targets(planned: plan.Plan, options: argparse.Namespace) -> str:
    return "\n".join(selection.targets(planned, options.patterns))


def _export(planned: plan.Plan, options: argparse.Namespace) -> str:
    from workflow.suite.results import archive

    count = archive.export(planned, options.directory, options.archive)
    return f"{count} finished Runs of scale {planned.scale.name} -> {options.archive} ({options.archive.stat().st_size / 1e6:.1f} MB)"


def _import(planned: plan.Plan, options: argparse.Namespace) -> str:
    from workflow.suite.results import archive

    return f"{archive.unpack(options.archive, options.directory)} Runs from {options.archive}; `status` says what they are part of"


def _claims(planned: plan.Plan, options: argparse.Namespace) -> str:
    from workflow.suite.paper.claims import catalogue, evidence, report

    paper, ours = catalogue.judge(evidence.of_paper(planned.tables)), catalogue.judge(evidence.of_results(planned, options.directory))
    return report.markdown(planned, paper, ours, made_by=made_by())


def _deviations(planned: plan.Plan, options: argparse.Namespace) -> str:
    from workflow.suite.planning import deviations

    return str(deviations.write_page(config.ROOT, options.directory))


if __name__ == "__main__":
    sys.exit(main())
