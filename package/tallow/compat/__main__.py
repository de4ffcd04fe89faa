"""Run a PyTorch program on tallow: `python -m tallow.compat`."""

from __future__ import annotations

import argparse
import os
import runpy
import sys
from collections.abc import Sequence

from tallow.compat.stand_in import install_torch


def main(argv: Sequence[str] | None = None) -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(
        prog="python -m tallow.compat",
        description="Run a program written for PyTorch on tallow: its `import torch` gives tallow.",
    )
    parser.add_argument("-m", action="store_true", dest="is_module", help="PROGRAM is a module name, as in python -m")
    parser.add_argument(
        "--own-models",
        action="store_true",
        help="import transformers, sentence_transformers and peft as tallow's, also where they are installed",
    )
    parser.add_argument("program", metavar="PROGRAM", help="a script; a folder or zip file with a __main__.py")
    parser.add_argument("args", nargs=argparse.REMAINDER, help="the program's own arguments")
    options = parser.parse_args(argv)
    if not options.is_module and not os.path.exists(options.program):
        parser.error(f"file not found: {options.program!r}; for a module, use -m")
    install_torch(own_models=options.own_models)
    sys.argv = [options.program, *options.args]
    if options.is_module:
        sys.path[0] = os.getcwd()
        runpy.run_module(options.program, run_name="__main__", alter_sys=True)
    else:
        if os.path.isfile(options.program):  # runpy does it for folders and zip files
            sys.path[0] = os.path.dirname(os.path.abspath(options.program))
        runpy.run_path(options.program, run_name="__main__")


if __name__ == "__main__":
    main()
