"""Rule page: tables, figures, differences and claims of a scale on one page."""

from workflow.suite.jobs import script
from workflow.suite.page import render

script.run(snakemake, lambda plan: render.write(plan))  # noqa: F821
