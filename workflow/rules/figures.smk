"""Figures: each waits for the Runs that it shows and for nothing else."""


rule all_figures:
    input:
        expand(
            paths.figure(PLAN.scale.name),
            figure=catalogue.available(PLAN),
            kind=paths.PICTURES,
        ),


rule first_epoch:
    input:
        paths.train_manifest(),
    output:
        paths.first_epoch(),
    log:
        paths.log("first_epoch", "{run}"),
    conda:
        ENVIRONMENT
    resources:
        gpu=int(PLAN.scale.require_gpu),
        runtime=lambda wc, attempt: train_needs(wc.run, attempt)["runtime"],
        mem_mb=lambda wc, attempt: train_needs(wc.run, attempt)["mem_mb"],
    params:
        folder=lambda wc: paths.run_folder(wc.run),
    shell:
        "exec python -m methods.first_epoch --run {params.folder} --out {output} > {log} 2>&1"


rule figure:
    input:
        needs=of_figure,
        code=lambda wc: behind(*catalogue.find(wc.figure).modules),
        scale=str(PLAN.scale.path),
    output:
        png=report(
            paths.figure(kind="png"),
            caption="../report/figure.rst",
            category="Figures",
            labels={"figure": "{figure}"},
        ),
        pdf=paths.figure(kind="pdf"),
    log:
        paths.log("figure", "{scale}", "{figure}"),
    localrule: True
    conda:
        ENVIRONMENT
    params:
        title=lambda wc: catalogue.find(wc.figure).title,
        about=lambda wc: catalogue.find(wc.figure).about,
        paper=lambda wc: catalogue.find(wc.figure).paper or "",
    script:
        "../scripts/figure.py"
