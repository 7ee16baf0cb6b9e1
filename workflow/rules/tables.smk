"""Tables, rows and the frame behind them: cheap, so they name their code as input and re-render freely.

A rule for another file of reports/<scale>/ should name it without wildcards: Snakemake then prefers it over `table`.
"""

RENDERING = [
    *sources(
        *("measure", "marks", "caption", "markdown", "latex", "sheet"),
        *("stats", "stale", "plan"),
    ),
    # A changed method makes numbers stale, which a table has to say.
    *METHODS,
]


rule all_tables:
    input:
        expand(
            paths.table(PLAN.scale.name),
            table=[*PLAN.tables, *paths.CLOSED],
            kind=paths.FORMATS,
        ),
        paths.frame(PLAN.scale.name),


rule table:
    input:
        evaluations=of_table,
        code=RENDERING,
        table=lambda wc: str(clear(PLAN.table, wc.table).path),
        scale=str(PLAN.scale.path),
    output:
        md=paths.table(kind="md"),
        tex=paths.table(kind="tex"),
        csv=report(
            paths.table(kind="csv"),
            caption="../report/table.rst",
            category="Tables",
            labels={"table": "{table}"},
        ),
    log:
        paths.log("table", "{scale}", "{table}"),
    localrule: True
    conda:
        ENVIRONMENT
    script:
        "../scripts/table.py"


rule row:
    input:
        evaluations=of_table,
        code=RENDERING,
        table=lambda wc: str(clear(PLAN.table, wc.table).path),
        scale=str(PLAN.scale.path),
    output:
        paths.row(),
    log:
        paths.log("row", "{scale}", "{table}", "{row}"),
    localrule: True
    conda:
        ENVIRONMENT
    script:
        "../scripts/row.py"


rule frame:
    input:
        evaluations=evaluations(),
        code=sources("frame", "measure"),
    output:
        paths.frame(PLAN.scale.name),
    log:
        paths.log("frame", PLAN.scale.name),
    localrule: True
    conda:
        ENVIRONMENT
    script:
        "../scripts/frame.py"
