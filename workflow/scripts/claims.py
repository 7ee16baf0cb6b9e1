"""Rule claims: the paper's claims, tested on its numbers and on ours."""

from workflow.suite import checks, job

job.run(snakemake, lambda plan: checks.write_claims(plan))  # noqa: F821
