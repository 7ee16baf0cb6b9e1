"""The page: everything of a scale in one file."""

PAGE = [
    *behind("page.render"),
    *(
        str(path)
        for kind in ("html", "css", "js")
        for path in sorted(settings.ROOT.glob(f"workflow/suite/page/*.{kind}"))
    ),
]


rule page:
    input:
        rules.all_tables.input,
        rules.all_figures.input,
        rules.all_checks.input,
        code=PAGE,
        tables=[str(table.path) for table in PLAN.tables.values()],
        scale=str(PLAN.scale.path),
        others=OTHERS_MEASURED,
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
