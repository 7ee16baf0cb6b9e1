"""Rule paper_audit: where the paper contradicts itself."""

from workflow.suite import checks, job

job.run(snakemake, lambda plan: checks.write_audit(plan))  # noqa: F821
