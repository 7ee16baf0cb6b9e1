"""Claims about the paper's own print: marks, captions, completeness. Nothing of ours can confirm them."""

from workflow.suite.paper.claims.claim import Claim, Finding, claim
from workflow.suite.paper.claims.evidence import Evidence
from workflow.suite.paper.claims.select import CLEAN, COMPLETE, MAIN, OTHER_NETS, VANILLA
from workflow.suite.tables import marks


def mark_counts(e: Evidence, table: str) -> tuple[int, int]:
    """How many marks of a table stand where its rule wants them, and how many are wrong or missing."""
    numbers = e.numbers(table=table)
    due = marks.best(e.tables[table], numbers.set_index(["row", "column"])["value"].to_dict())
    marked = numbers.dropna(subset="mark").set_index(["row", "column"])["mark"].to_dict()
    right = sum(due.get(place) == mark for place, mark in marked.items())
    return right, len(set(marked) | set(due)) - right


def marked(id: str, where: str, text: str, rule: str, *tables: str) -> Claim:
    @claim(id, where, text, rule)
    def test(e: Evidence) -> Finding:
        e.print_only()
        counts = [mark_counts(e, name) for name in tables]
        right, wrong = (sum(count[i] for count in counts) for i in (0, 1))
        return wrong == 0, f"{right} marks are right, {wrong} wrong or missing"

    return test


BEST = "exactly the largest number of each column is marked"
grid_marks = marked("C10", "4.1", "The best result of each pruning rate is bold", BEST, "sp_ratio")
robust_marks = marked("C19", "4.1", "The best results of the robust ablation are bold", BEST, "main_ablation")
vanilla_marks = marked("C24", "D.2.1", "The best results of the vanilla ablation are bold", BEST, "vanilla_ablation")
comparison_marks = marked(
    "C72",
    "captions",
    "Comparison tables mark the best compressed binary and full-precision model",
    "exactly the largest compressed number of each column is marked",
    *(MAIN, CLEAN, VANILLA, COMPLETE, OTHER_NETS),
)


@claim(
    "C58", "4.2, D.1", "'Small RN34' of the main table is Small RN34-p0.1", "its CIFAR cells are those of that row of the complete table"
)
def which_small_network(e: Evidence) -> Finding:
    e.print_only()
    place = e.printed["small_row"]
    mine = e.numbers(table=place["table"], row=place["row"]).set_index("column")["value"]
    equal, common = {}, 0
    for kind in ("said", "other"):
        theirs = e.numbers(table=place["complete"], row=place[kind]).set_index("column")["value"]
        common = len(theirs)
        equal[kind] = int((mine.reindex(theirs.index) == theirs).sum())
    return equal["said"] == common, f"equal to p0.1 in {equal['said']} of {common} cells, to p1.0 in {equal['other']} of {common}"


@claim(
    "C100",
    "checklist",
    "All training details are given, and the compute used",
    "no setting of workflow/config/paper.yaml is without a value",
)
def details_are_given(e: Evidence) -> Finding:
    e.print_only()
    absent = [name for name, value in e.printed["settings"].items() if value is None]
    return not absent, f"not given: {', '.join(absent)}" if absent else "all given"
