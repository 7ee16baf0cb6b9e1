"""Rule row: one row of a table, from the finished evaluations."""

from workflow.suite.jobs import script
from workflow.suite.tables import render

script.run(snakemake, lambda plan: render.write_row(plan, snakemake.wildcards.table, snakemake.wildcards.row))  # noqa: F821
