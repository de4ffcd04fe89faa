"""The option that says where a command computes."""

from __future__ import annotations

import argparse

META = "meta"  # tensors there have shapes and no numbers


def add_device_option(parser: argparse.ArgumentParser | argparse._ArgumentGroup) -> None:
    parser.add_argument(
        "--device", type=_device, default="cpu", metavar="DEVICE", help="cpu, cuda, cuda:1, ... (default: %(default)s)"
    )


def _device(name: str) -> str:
    if name == META:
        raise argparse.ArgumentTypeError(f"{name!r} computes nothing; expected cpu, cuda, cuda:1, ...")
    return name
