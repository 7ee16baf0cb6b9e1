"""Rule figure: one figure in every format, from the finished Runs."""

from workflow.suite.figures import catalogue
from workflow.suite.jobs import script

script.run(snakemake, lambda plan: catalogue.write(plan, snakemake.wildcards.figure))  # noqa: F821
