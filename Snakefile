"""From a fresh clone to the paper's tables: `snakemake --cores 8 all_tables`."""

from snakemake.utils import min_version

min_version("9.0")


configfile: f"{workflow.basedir}/workflow/config/suite.yaml"


report: "workflow/report/workflow.rst"


include: "workflow/rules/common.smk"
include: "workflow/rules/data.smk"
include: "workflow/rules/train.smk"
include: "workflow/rules/evaluate.smk"
include: "workflow/rules/tables.smk"
include: "workflow/rules/figures.smk"
include: "workflow/rules/checks.smk"
include: "workflow/rules/report.smk"
include: "workflow/rules/demo.smk"
include: "workflow/rules/bench.smk"


onstart:
    at_start()


localrules:
    all,
    all_tables,
    all_figures,
    all_checks,
    bench,
    demo,


rule all:
    default_target: True
    input:
        rules.all_tables.input,
        rules.all_figures.input,
        rules.all_checks.input,
        rules.page.output,
