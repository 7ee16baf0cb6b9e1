"""Command line of the suite: `suite COMMAND`, or `python -m workflow.suite COMMAND`; `--help` lists them (workflow/suite/commands/)."""

import argparse
import sys
from pathlib import Path

from methods.core.errors import UserError
from workflow.suite.commands import archives, checks, demo, own_methods, plans, reports, snakemakes
from workflow.suite.commands.command import Run
from workflow.suite.planning import config, plan

KINDS = (plans, reports, checks, archives, demo, snakemakes, own_methods)


def main(arguments: list[str] | None = None) -> int:
    """Run a command; wrong input is one line on stderr and exit code 2."""
    options = parser().parse_args(arguments)
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


def parser() -> argparse.ArgumentParser:
    """Every command with its options."""
    top = argparse.ArgumentParser(prog=_prog(), description="What is planned, what is done, and where it lies.")
    shared = argparse.ArgumentParser(add_help=False)
    shared.add_argument("--scale", help=f"one of: {', '.join(config.names('scales'))} (default: that of suite.yaml)")
    shared.add_argument("--data-root", help="where full datasets lie (default: that of suite.yaml)")
    shared.add_argument("--seeds", type=_seeds, metavar="1,2,3", help="in the place of the scale's (default: those of suite.yaml, if any)")
    shared.add_argument("--directory", type=Path, default=Path(), help="where results/ and reports/ lie (default: here)")
    commands = top.add_subparsers(required=True, metavar="COMMAND")

    def add(name: str, run: Run, text: str) -> argparse.ArgumentParser:
        command = commands.add_parser(name, help=text, description=text, parents=[shared])
        command.set_defaults(run=run)
        return command

    for kind in KINDS:
        kind.add(add)
    return top


def _prog() -> str:
    """How it was called: by the installed command, or as a module."""
    return "suite" if Path(sys.argv[0]).stem == "suite" else "python -m workflow.suite"


def _seeds(text: str) -> tuple[int, ...]:
    try:
        return config.seeds_of(text)
    except UserError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


if __name__ == "__main__":
    sys.exit(main())
