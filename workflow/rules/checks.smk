"""Results against the paper (diff, claims), the paper against itself (audit), and its tables of closed forms."""

CHECKS = behind("paper.checks")
PRINTED = [
    str(settings.CONFIG / "paper.yaml"),
    *(str(table.path) for table in PLAN.tables.values()),
]


rule all_checks:
    input:
        expand(paths.diff(PLAN.scale.name), kind=["md", "csv"]),
        expand(paths.claims(PLAN.scale.name), kind=["md", "csv"]),
        paths.paper_audit(),


rule diff:
    input:
        evaluations=evaluations(),
        code=CHECKS,
        # A changed method makes numbers stale, which is for this rule to say.
        methods=METHODS,
        tables=[str(table.path) for table in PLAN.tables.values()],
        scale=str(PLAN.scale.path),
    output:
        md=paths.diff(PLAN.scale.name, "md"),
        csv=paths.diff(PLAN.scale.name, "csv"),
    log:
        paths.log("diff", PLAN.scale.name),
    localrule: True
    conda:
        ENVIRONMENT
    script:
        "../scripts/diff.py"


rule claims:
    input:
        evaluations=evaluations(),
        code=CHECKS,
        printed=PRINTED,
        scale=str(PLAN.scale.path),
    output:
        md=paths.claims(PLAN.scale.name, "md"),
        csv=paths.claims(PLAN.scale.name, "csv"),
    log:
        paths.log("claims", PLAN.scale.name),
    localrule: True
    conda:
        ENVIRONMENT
    script:
        "../scripts/claims.py"


rule paper_audit:
    input:
        code=CHECKS,
        printed=PRINTED,
    output:
        paths.paper_audit(),
    log:
        paths.log("paper_audit", "paper"),
    localrule: True
    conda:
        ENVIRONMENT
    script:
        "../scripts/paper_audit.py"


rule complexity:
    input:
        code=CHECKS,
        printed=PRINTED,
    output:
        md=paths.table(PLAN.scale.name, "complexity", "md"),
        tex=paths.table(PLAN.scale.name, "complexity", "tex"),
        csv=paths.table(PLAN.scale.name, "complexity", "csv"),
    log:
        paths.log("complexity", PLAN.scale.name),
    localrule: True
    conda:
        ENVIRONMENT
    script:
        "../scripts/closed_table.py"


use rule complexity as smallnet with:
    output:
        md=paths.table(PLAN.scale.name, "smallnet", "md"),
        tex=paths.table(PLAN.scale.name, "smallnet", "tex"),
        csv=paths.table(PLAN.scale.name, "smallnet", "csv"),
    log:
        paths.log("smallnet", PLAN.scale.name),
