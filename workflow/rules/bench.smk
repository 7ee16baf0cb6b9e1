"""Speed, measured: `snakemake --cores all bench` (again with `-F`). Ratios taken within one run; never part of `all`."""


rule bench:
    input:
        [
            paths.bench(part)
            for part in (
                "train",
                "evaluate",
                "precision",
                "loader",
                "sparse",
                "attack",
            )
        ],


rule bench_part:
    output:
        paths.bench("{part}"),
    log:
        paths.log("bench", "{part}"),
    wildcard_constraints:
        part="train|evaluate|precision|loader|sparse|attack",
    conda:
        ENVIRONMENT
    # Everything at once would measure the neighbours.
    threads: os.cpu_count() or 1
    params:
        plot=lambda wildcards: (
            "--plot reports/bench/sparse.png" if wildcards.part == "sparse" else ""
        ),
    shell:
        "python -m methods.bench.{wildcards.part} --out {output} {params.plot} 2>&1 | tee {log}"
