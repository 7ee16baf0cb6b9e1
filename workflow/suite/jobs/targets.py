"""What Snakemake is asked to make, looked at before it says that no rule produces it: names that are mistyped."""

from collections.abc import Collection, Iterable

from methods.core import paths
from methods.core.errors import UserError
from workflow.suite.planning.spelling import hint

LISTED = "`snakemake --list` and `suite rows` say what can be made"


def check(targets: Iterable[str], *, rules: Collection[str], scales: Collection[str]) -> None:
    """Refuse a word that is no rule, and a report of a scale that there is not. Any other file is for Snakemake to judge."""
    for target in sorted(targets):
        folder, *rest = target.split("/")
        if not rest and target not in rules and "." not in target:
            raise UserError(f"no rule and no file to make is called '{target}'; {hint(target, rules)}{LISTED}")
        if folder == paths.REPORTS and len(rest) > 1 and rest[0] not in scales:
            form = "/".join([folder, "{}", *rest[1:]])
            raise UserError(f"'{target}': no scale is called '{rest[0]}'; {hint(rest[0], scales, form)}allowed: {', '.join(scales)}")
