"""Speed, measured: `snakemake --cores all bench` (again with `-F`). Ratios taken within one run; never part of `all`."""


rule bench:
    input:
        [paths.bench(part) for part in ("train", "evaluate", "precision", "loader")],


rule bench_part:
    output:
        paths.bench("{part}"),
    log:
        paths.log("bench", "{part}"),
    wildcard_constraints:
        part="train|evaluate|precision|loader",
    conda:
        ENVIRONMENT
    # Everything at once would measure the neighbours.
    threads: os.cpu_count() or 1
    shell:
        "python -m methods.bench.{wildcards.part} --out {output} 2>&1 | tee {log}"
