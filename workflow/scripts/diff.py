"""Rule diff: our numbers against the paper's."""

from workflow.suite import checks, job

job.run(snakemake, lambda plan: checks.write_diff(plan))  # noqa: F821
