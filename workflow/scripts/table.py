"""Rule table: a table in every format, from the finished evaluations."""

from workflow.suite.jobs import script
from workflow.suite.tables import render

script.run(snakemake, lambda plan: render.write_table(plan, snakemake.wildcards.table))  # noqa: F821
