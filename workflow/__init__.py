"""The workflow around the methods: planning, Snakemake rules, rendering."""
