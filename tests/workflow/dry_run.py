"""What a dry run of Snakemake says."""

import re


def jobs(output):
    """Rule -> number of jobs, from the statistics of a dry run."""
    stats = output[output.rindex("Job stats:") :]
    return {name: int(count) for name, count in re.findall(r"^(\w+) +(\d+)$", stats, re.MULTILINE)}
