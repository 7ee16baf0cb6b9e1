"""Datasets, verified once, where Snakemake itself runs: the nodes of a cluster often cannot reach the internet."""


rule data:
    output:
        paths.data_manifest(),
    log:
        paths.log("data", "{dataset}", "{source}"),
    localrule: True
    conda:
        ENVIRONMENT
    shell:
        "exec python -m methods.warm methods.data --dataset {wildcards.dataset} --source {wildcards.source}"
        ' --root "$SUITE_DATA_ROOT" --out {output} > {log} 2>&1'
