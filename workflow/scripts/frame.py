"""Rule frame: all measured numbers as one frame, from the finished evaluations."""

from workflow.suite.jobs import script
from workflow.suite.tables import render

script.run(snakemake, lambda plan: render.write_frame(plan))  # noqa: F821
