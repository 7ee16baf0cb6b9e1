"""The page: everything of a scale in one file."""

PAGE = [
    *sources("measure", "marks", "caption", "stats", "plan", "status", "closed_tables"),
    *(str(path) for path in sorted(settings.ROOT.glob("workflow/suite/page/*.*"))),
]


rule page:
    input:
        rules.all_tables.input,
        rules.all_figures.input,
        rules.all_checks.input,
        code=PAGE,
        tables=[str(table.path) for table in PLAN.tables.values()],
        scale=str(PLAN.scale.path),
    output:
        report(
            paths.page(PLAN.scale.name),
            caption="../report/page.rst",
            category="Page",
        ),
    log:
        paths.log("page", PLAN.scale.name),
    localrule: True
    conda:
        ENVIRONMENT
    script:
        "../scripts/page.py"
