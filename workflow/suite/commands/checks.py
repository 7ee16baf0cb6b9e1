"""Commands that hold numbers against each other: diff, versus, claims, trust, others."""

import argparse
from pathlib import Path

from methods.core.errors import UserError
from methods.core.revision import made_by
from workflow.suite.commands.command import Add
from workflow.suite.planning import config, plan
from workflow.suite.results.compare import VERDICTS


def add(command: Add) -> None:
    """The commands of this module."""
    diff = command("diff", _diff, "Our numbers against the paper's; or, given A and B, the results B against the results A.")
    diff.add_argument(
        "sets",
        nargs="*",
        metavar="A B",
        help="two of: a scale (with seeds of its own: lite:1,2), a .parquet or .csv frame, a folder with results/",
    )
    diff.add_argument("--table", help="only this table")
    diff.add_argument("--only", type=_verdicts, default=(), metavar="lower,higher", help=f"only these of: {', '.join(VERDICTS)}")
    diff.add_argument("--strict", action="store_true", help="exit code 1 unless every number is reproduced")
    versus = command("versus", _versus, "One row against another over the same images; or every row of a table against the best.")
    versus.add_argument("rows", nargs="+", metavar="ROW", help="two rows (TABLE.ROW TABLE.ROW), two cells (TABLE.ROW.COLUMN), or one table")
    versus.add_argument("--column", help="only this column")
    trust = command("trust", _trust, "Whether robust numbers are real: every check of every evaluated cell, counts first.")
    trust.add_argument("--table", help="only this table")
    trust.add_argument("--strict", action="store_true", help="exit code 1 where any check fails")
    others = command("others", _others, "What others measured for the networks of the tables, beside the paper's numbers.")
    others.add_argument("--table", help="only what is about cells of this table")
    command("claims", _claims, "The paper's claims, tested on its numbers and on ours.")


def _diff(planned: plan.Plan, options: argparse.Namespace) -> tuple[str, int]:
    from workflow.suite.results import compare, result_sets
    from workflow.suite.tables import diff_text

    if len(options.sets) not in (0, 2):
        raise UserError(f"diff takes no set of results, or two; it was given {len(options.sets)}")
    table = planned.table(options.table).name if options.table else None
    if options.sets:
        root = Path(options.data_root) if options.data_root else config.load_suite().data_root
        first, second = (result_sets.load(text, planned, folder=options.directory, data_root=root) for text in options.sets)
        differences = result_sets.diff(first, second, table)
        text = diff_text.of_sets(first, second, differences, only=options.only)
    else:
        differences = compare.compare(planned, options.directory, table)
        text = diff_text.of_plan(planned, differences, only=options.only, made_by=made_by())
    return text, int(options.strict and not compare.reproduced(differences))


def _verdicts(text: str) -> tuple[str, ...]:
    """Verdicts in their order; a dash may stand for the space in a name."""
    words = {word.strip().replace("-", " ") for word in text.split(",")}
    if unknown := words - set(VERDICTS):
        raise argparse.ArgumentTypeError(f"'{', '.join(sorted(unknown))}' is no verdict; allowed: {', '.join(VERDICTS)}")
    return tuple(verdict for verdict in VERDICTS if verdict in words)


def _versus(planned: plan.Plan, options: argparse.Namespace) -> str:
    from workflow.suite.results import versus
    from workflow.suite.tables import versus_text

    names = options.rows
    if len(names) == 2 and all(name.count(".") == 2 for name in names):
        if options.column is not None:
            raise UserError(f"--column {options.column}: two cells name their columns themselves")
        return versus_text.of_cells(planned, *names, versus.cells(planned, *names, options.directory))
    if len(names) == 2:
        return versus_text.of_rows(planned, *names, versus.rows(planned, *names, options.directory, options.column))
    if len(names) > 2 or "." in names[0]:
        raise UserError(
            f"versus takes two rows (TABLE.ROW TABLE.ROW), two cells (TABLE.ROW.COLUMN) or one table; it was given '{' '.join(names)}'"
        )
    columns = versus.of_table(planned, names[0], options.directory)
    if options.column is not None and options.column not in columns:
        raise UserError(f"'{options.column}' is no column of {names[0]} with two measured rows; allowed: {', '.join(columns)}")
    return versus_text.of_table(planned, names[0], {options.column: columns[options.column]} if options.column else columns)


def _trust(planned: plan.Plan, options: argparse.Namespace) -> tuple[str, int]:
    from workflow.suite.results import trust
    from workflow.suite.tables import trust_text

    cells = trust.of_plan(planned, options.directory, options.table)
    failing = any(item.state == trust.FAIL for item in cells.values())
    return trust_text.of_plan(planned, cells, options.directory), int(options.strict and failing)


def _others(planned: plan.Plan, options: argparse.Namespace) -> str:
    from workflow.suite.tables import others_text

    return others_text.of_plan(planned, options.table)


def _claims(planned: plan.Plan, options: argparse.Namespace) -> str:
    from workflow.suite.paper.claims import catalogue, evidence, report

    paper, ours = catalogue.judge(evidence.of_paper(planned.tables)), catalogue.judge(evidence.of_results(planned, options.directory))
    return report.markdown(planned, paper, ours, made_by=made_by())
