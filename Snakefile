"""From a fresh clone to the paper's tables: `snakemake --cores 8 all_tables`."""


# What an installed copy of the suite carries too.
include: "workflow/Snakefile"


# An included file has no say in what is made where no target is named.
workflow.default_target = "all"
