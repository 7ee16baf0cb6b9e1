"""Training phases, one Run each.

The command is frozen and its params are canonical text made from wildcards alone: anything else would train everything
again for a change that changes nothing. Checkpoints lie in an undeclared folder beside the outputs, which Snakemake
leaves alone when a job fails.
"""


rule train:
    input:
        data=lambda wc: data_of(wc.run),
        parent=lambda wc: (
            [paths.train_manifest(planned(wc.run).parent)]
            if planned(wc.run).parent
            else []
        ),
    output:
        manifest=paths.train_manifest(),
        model=paths.model(),
    log:
        paths.log("train", "{run}"),
    conda:
        ENVIRONMENT
    threads: lambda wc: train_needs(wc.run, 1)["processes"]
    resources:
        gpu=lambda wc: train_needs(wc.run, 1)["gpu"],
        nodes=1,
        runtime=lambda wc, attempt: train_needs(wc.run, attempt)["runtime"],
        mem_mb=lambda wc, attempt: train_needs(wc.run, attempt)["mem_mb"],
    params:
        spec=lambda wc: planned(wc.run).text,
        folder=lambda wc: paths.run_folder(wc.run),
    shell:
        "exec python -m methods.warm methods.train --spec {params.spec:q} --out {params.folder} > {log} 2>&1"
