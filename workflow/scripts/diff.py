"""Rule diff: our numbers against the paper's."""

from workflow.suite.jobs import script
from workflow.suite.paper import checks

script.run(snakemake, lambda plan: checks.write_diff(plan))  # noqa: F821
