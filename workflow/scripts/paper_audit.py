"""Rule paper_audit: where the paper contradicts itself."""

from workflow.suite.jobs import script
from workflow.suite.paper import checks

script.run(snakemake, lambda plan: checks.write_audit(plan))  # noqa: F821
