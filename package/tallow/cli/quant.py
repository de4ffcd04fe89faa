"""The option --quant, which commands share."""

from __future__ import annotations

import argparse

from tallow.models.quantize import QUANTS


def add_quant_option(parser: argparse.ArgumentParser | argparse._ArgumentGroup) -> None:
    """Add the option --quant."""
    parser.add_argument(
        "--quant",
        choices=QUANTS,
        help="quantise the matrices of the model while loading; int8 takes a quarter of the memory of float32, and is "
        "faster on the CPU (default: as in the file)",
    )
