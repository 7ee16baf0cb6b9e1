"""What a command is: a function of the plan and its options that gives a text to print, and an exit code where that is not zero."""

import argparse
from collections.abc import Callable
from typing import Any

from workflow.suite.planning.plan import Plan

Run = Callable[[Plan, argparse.Namespace], Any]
Add = Callable[[str, Run, str], argparse.ArgumentParser]
