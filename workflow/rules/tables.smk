"""Tables, rows and the frame behind them: cheap, so they name their code as input and re-render freely."""

# A changed method makes numbers stale, which a table has to say.
RENDERING = [*behind("tables.render"), *METHODS]


# Files of reports/<scale>/ that rules of their own make: Snakemake would try `table` for them too, and complain.
OTHERS = "|".join([*paths.CLOSED, *paths.CHECKS])


rule all_tables:
    input:
        expand(
            paths.table(PLAN.scale.name),
            table=[*PLAN.tables, *paths.CLOSED],
            kind=paths.FORMATS,
        ),
        expand(paths.frame(PLAN.scale.name), kind=paths.FRAMES),


rule table:
    input:
        evaluations=of_table,
        code=RENDERING,
        table=lambda wc: str(clear(PLAN.table, wc.table).path),
        scale=str(PLAN.scale.path),
        others=OTHERS_MEASURED,
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
    wildcard_constraints:
        table=f"(?!(?:{OTHERS})\\.)[a-z0-9_]+",
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
        others=OTHERS_MEASURED,
    output:
        md=paths.row(kind="md"),
        tex=paths.row(kind="tex"),
        csv=paths.row(kind="csv"),
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
        code=RENDERING,
        tables=[str(table.path) for table in PLAN.tables.values()],
        scale=str(PLAN.scale.path),
    output:
        expand(paths.frame(PLAN.scale.name), kind=paths.FRAMES),
    log:
        paths.log("frame", PLAN.scale.name),
    localrule: True
    conda:
        ENVIRONMENT
    script:
        "../scripts/frame.py"
