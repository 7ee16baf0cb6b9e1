"""Rule claims: the paper's claims, tested on its numbers and on ours."""

from workflow.suite.jobs import script
from workflow.suite.paper import checks

script.run(snakemake, lambda plan: checks.write_claims(plan))  # noqa: F821
