"""What Snakemake's jobs share, and how a start copes with what earlier ones left."""
