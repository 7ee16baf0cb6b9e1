"""What `make demo` trains while one looks on: two networks of one row, from nothing to its rendered line."""


rule demo:
    input:
        paths.row(PLAN.scale.name, "bn_ablation", "a0001"),
