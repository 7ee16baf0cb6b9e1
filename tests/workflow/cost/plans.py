"""Plans for the tests of costs, each made once."""

from functools import cache
from pathlib import Path

from workflow.suite.planning import plan


@cache
def planned(scale):
    return plan.load(scale, data_root=Path("no-such-data"))
