"""What `make demo` shows: two tables of the paper and two of its figures."""


rule demo:
    input:
        expand(
            paths.table(PLAN.scale.name, kind="md"),
            table=["bn_ablation", "main_ablation"],
        ),
        expand(
            paths.figure(PLAN.scale.name, kind="png"),
            figure=["mask_dist", "kernel_histogram"],
        ),
