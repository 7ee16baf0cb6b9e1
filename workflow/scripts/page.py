"""Rule page: tables, figures, differences and claims of a scale on one page."""

from workflow.suite import job
from workflow.suite.page import render

job.run(snakemake, lambda plan: render.write(plan))  # noqa: F821
