"""Files that hold results against the paper, and the paper against itself: diff, claims, audit, the tables of closed forms."""

from pathlib import Path

from methods.core import files, paths
from methods.core.errors import UserError
from methods.core.revision import made_by
from workflow.suite.paper import closed_tables
from workflow.suite.paper.audit import report as audit
from workflow.suite.paper.claims import catalogue, evidence
from workflow.suite.paper.claims import report as claims
from workflow.suite.planning.plan import Plan
from workflow.suite.results import compare
from workflow.suite.tables import diff_text


def write_diff(plan: Plan, folder: Path = Path()) -> list[Path]:
    """reports/<scale>/diff.md and .csv."""
    differences, scale = compare.compare(plan, folder), plan.scale.name
    texts = {"md": diff_text.of_plan(plan, differences, made_by=made_by()), "csv": diff_text.sheet(differences)}
    return _write({folder / paths.diff(scale, kind): text for kind, text in texts.items()})


def write_claims(plan: Plan, folder: Path = Path()) -> list[Path]:
    """reports/<scale>/claims.md and .csv."""
    paper, ours = catalogue.judge(evidence.of_paper(plan.tables)), catalogue.judge(evidence.of_results(plan, folder))
    texts = {"md": claims.markdown(plan, paper, ours, made_by=made_by()), "csv": claims.sheet(paper, ours)}
    return _write({folder / paths.claims(plan.scale.name, kind): text for kind, text in texts.items()})


def write_audit(plan: Plan, folder: Path = Path()) -> list[Path]:
    """reports/paper_audit.md."""
    text = audit.markdown(evidence.of_paper(plan.tables), made_by=made_by())
    return _write({folder / paths.paper_audit(): text})


def write_closed(plan: Plan, name: str, folder: Path = Path()) -> list[Path]:
    """A table of closed forms in every format."""
    if name not in closed_tables.TABLES:
        raise UserError(f"no table of closed forms is called '{name}'; allowed: {', '.join(closed_tables.TABLES)}")
    table, by = closed_tables.TABLES[name](evidence.of_paper(plan.tables)), made_by()
    texts = {"md": table.markdown(by), "tex": table.latex(by), "csv": table.sheet()}
    return _write({folder / paths.table(plan.scale.name, name, kind): text for kind, text in texts.items()})


def _write(texts: dict[Path, str]) -> list[Path]:
    for path, text in texts.items():
        files.write(path, text)
    return list(texts)
