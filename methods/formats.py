"""Whether this device computes in a number format, or would imitate it: `python -m methods.formats bf16`.

A CPU without bfloat16 units computes the same numbers to rounding (inputs and outputs of convolutions are rounded in the same places, sums
are float32), and takes about twice the time of float32 instead of half of it. So that nobody loses time unawares, it is refused unless
SUITE_IMITATE_BF16 asks for it; a scale whose trainings are in bfloat16 can then be gone on with on any CPU. What a GPU without the units
would do nobody has tried: there it stays refused.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from typing import Any

from methods.core import settings
from methods.core.errors import UserError
from methods.runtime.device import kind
from methods.training.precision import require_units

FORMATS = ("fp32", "bf16")


def imitated(train: Mapping[str, Any]) -> bool:
    """Whether this device has to imitate the number format of a run's `train` settings; refused where that was not asked for."""
    device = kind()
    try:
        require_units(train, device)
    except UserError as error:
        if device != "cpu":
            raise
        if not settings.imitate_bf16():
            raise UserError(f"{error}; or imitate them all the same: --config imitate_bf16=true, or {settings.IMITATE_BF16}=1") from None
        return True
    return False


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m methods.formats", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("format", choices=FORMATS, help="of a training's convolutions ('train.compute')")
    options = parser.parse_args(arguments)
    try:
        print("imitated" if imitated({"compute": options.format}) else "computed")
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
