"""Rules complexity and smallnet: a table of closed forms in every format."""

from workflow.suite import checks, job

job.run(snakemake, lambda plan: checks.write_closed(plan, snakemake.rule))  # noqa: F821
