"""Evaluations: the test set in shards, merged. Other attack settings are another evaluation of the same Run."""

if all(one.shards == 1 for one in PLAN.evaluations.values()):

    # One job instead of two where nothing is cut: at small scales Snakemake's own time per job counts.
    rule evaluate:
        input:
            paths.train_manifest(),
        output:
            paths.evaluation(),
        log:
            paths.log("evaluate", "{run}", "{evaluation}"),
        conda:
            ENVIRONMENT
        resources:
            gpu=int(PLAN.scale.require_gpu),
            runtime=lambda wc, attempt: evaluate_needs(wc.run, wc.evaluation, attempt)[
                "runtime"
            ],
            mem_mb=lambda wc, attempt: evaluate_needs(wc.run, wc.evaluation, attempt)[
                "mem_mb"
            ],
        params:
            spec=lambda wc: evaluated(wc.run, wc.evaluation).text,
            folder=lambda wc: paths.run_folder(wc.run),
            shard=lambda wc: paths.shard(wc.run, wc.evaluation, 1, 1),
        shell:
            "python -m methods.warm methods.evaluate run --run {params.folder} --spec {params.spec:q} --shard 1/1 --out {params.shard} > {log} 2>&1"
            " && exec python -m methods.warm methods.evaluate merge --out {output} {params.shard} >> {log} 2>&1"

else:

    rule evaluate:
        input:
            paths.train_manifest(),
        output:
            paths.shard(),
        log:
            paths.log("evaluate", "{run}", "{evaluation}", "{k}-of-{n}"),
        conda:
            ENVIRONMENT
        resources:
            gpu=int(PLAN.scale.require_gpu),
            runtime=lambda wc, attempt: evaluate_needs(wc.run, wc.evaluation, attempt)[
                "runtime"
            ],
            mem_mb=lambda wc, attempt: evaluate_needs(wc.run, wc.evaluation, attempt)[
                "mem_mb"
            ],
        params:
            spec=lambda wc: evaluated(wc.run, wc.evaluation).text,
            folder=lambda wc: paths.run_folder(wc.run),
        shell:
            "exec python -m methods.warm methods.evaluate run --run {params.folder} --spec {params.spec:q}"
            " --shard {wildcards.k}/{wildcards.n} --out {output} > {log} 2>&1"

    rule merge:
        input:
            lambda wc: [
                paths.shard(
                    wc.run, wc.evaluation, k, evaluated(wc.run, wc.evaluation).shards
                )
                for k in range(1, evaluated(wc.run, wc.evaluation).shards + 1)
            ],
        output:
            paths.evaluation(),
        log:
            paths.log("merge", "{run}", "{evaluation}"),
        localrule: True
        conda:
            ENVIRONMENT
        shell:
            "exec python -m methods.warm methods.evaluate merge --out {output} {input} > {log} 2>&1"


# No target asks for it: robust accuracy at eight radii, of a Run that it is wanted for.
rule security_curve:
    input:
        paths.train_manifest(),
    output:
        paths.security_curve(),
    log:
        paths.log("security_curve", "{run}", "{norm}"),
    conda:
        ENVIRONMENT
    resources:
        gpu=int(PLAN.scale.require_gpu),
        runtime=lambda wc, attempt: curve_needs(wc.run, attempt)["runtime"],
        mem_mb=lambda wc, attempt: curve_needs(wc.run, attempt)["mem_mb"],
    params:
        folder=lambda wc: paths.run_folder(wc.run),
    shell:
        "exec python -m methods.warm methods.evaluate curve --run {params.folder} --norm {wildcards.norm} --out {output} > {log} 2>&1"
