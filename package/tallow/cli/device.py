"""The option --device, which commands share."""

from __future__ import annotations

import argparse

META = "meta"  # tensors there have shapes but no values


def add_device_option(parser: argparse.ArgumentParser | argparse._ArgumentGroup) -> None:
    """Add the option --device."""
    parser.add_argument(
        "--device",
        type=_device,
        default="cpu",
        metavar="DEVICE",
        help="device to compute on: cpu, cuda, cuda:1, ... (default: %(default)s)",
    )


def _device(name: str) -> str:
    if name == META:
        raise argparse.ArgumentTypeError(f"{name!r} cannot compute; expected cpu, cuda, cuda:1, ...")
    return name
