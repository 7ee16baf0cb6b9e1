"""Rule figure: one figure in every format, from the finished Runs."""

from workflow.suite import job
from workflow.suite.figures import catalogue

job.run(snakemake, lambda plan: catalogue.write(plan, snakemake.wildcards.figure))  # noqa: F821
