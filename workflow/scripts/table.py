"""Rule table: a table in every format, from the finished evaluations."""

from workflow.suite import job, render

job.run(snakemake, lambda plan: render.write_table(plan, snakemake.wildcards.table))  # noqa: F821
