"""Rule frame: all evaluations as one frame, from the finished evaluations."""

from workflow.suite import job, render

job.run(snakemake, lambda plan: render.write_frame(plan))  # noqa: F821
