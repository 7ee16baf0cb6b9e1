"""Commands that give results to others: export, import, keep."""

import argparse
from pathlib import Path

from workflow.suite.commands.command import Add
from workflow.suite.planning import plan


def add(command: Add) -> None:
    """The commands of this module."""
    export = command("export", _export, "Finished Runs of a scale as one archive with checksums: networks, manifests, outcomes.")
    export.add_argument("archive", type=Path, help="the .zip to write")
    unpack = command("import", _import, "Put the Runs of an exported archive in their places; nothing of your own is overwritten.")
    unpack.add_argument("archive", type=Path, help="a .zip that `export` wrote")
    command("keep", _keep, "Let git track the evaluated Runs of a scale: networks, manifests, histories, outcomes. You commit them.")


def _export(planned: plan.Plan, options: argparse.Namespace) -> str:
    from workflow.suite.results import archive

    count = archive.export(planned, options.directory, options.archive)
    return f"{count} finished Runs of scale {planned.scale.name} -> {options.archive} ({options.archive.stat().st_size / 1e6:.1f} MB)"


def _import(planned: plan.Plan, options: argparse.Namespace) -> str:
    from workflow.suite.results import archive

    return f"{archive.unpack(options.archive, options.directory)} Runs from {options.archive}; `status` says what they are part of"


def _keep(planned: plan.Plan, options: argparse.Namespace) -> str:
    from workflow.suite.results import kept

    done = kept.keep(planned, options.directory)
    lines = [f"{done.runs} Runs of scale {planned.scale.name} are tracked, {done.files} files; results in git: {done.size / 1e6:.1f} MB"]
    if done.others:
        lines.append(f"of no Run of this plan are {len(done.others)} tracked files such as {done.others[0]}; `git rm` what nobody needs")
    return "\n".join(lines)
