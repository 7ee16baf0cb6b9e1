"""Rule table: render from the finished evaluations."""

from pathlib import Path

from workflow.suite import config, render
from workflow.suite.plan import load

with Path(snakemake.log[0]).open("w") as log:  # noqa: F821
    suite = config.load_suite(snakemake.config)  # noqa: F821
    plan = load(suite.scale, data_root=suite.data_root)
    print(render.write_table(plan, snakemake.wildcards.table), file=log)  # noqa: F821
