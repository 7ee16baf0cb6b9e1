"""Rules complexity and smallnet: a table of closed forms in every format."""

from workflow.suite.jobs import script
from workflow.suite.paper import checks

script.run(snakemake, lambda plan: checks.write_closed(plan, snakemake.rule))  # noqa: F821
