"""The paper's baselines, one file each; every file stands by itself on top of the methods library."""
