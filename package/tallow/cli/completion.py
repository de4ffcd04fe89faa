"""`tallow completion`: print the completion of commands and options for a shell.

Bash:  tallow completion bash > ~/.local/share/bash-completion/completions/tallow
Zsh:   tallow completion zsh > ~/.zfunc/_tallow, with ~/.zfunc in fpath
Fish:  tallow completion fish > ~/.config/fish/completions/tallow.fish
"""

from __future__ import annotations

import argparse

from tallow.cli.parser import COMMANDS, parser_of
from tallow.errors import MissingPackageError

SHELLS = ("bash", "zsh", "tcsh", "fish")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the argument of `tallow completion`."""
    parser.add_argument("shell", choices=SHELLS, help="the shell whose completion is printed")


def run(arguments: argparse.Namespace) -> int:
    """Print the script.

    Raises:  MissingPackageError without shtab, which writes it
    """
    try:
        import shtab
    except ImportError as error:
        raise MissingPackageError("shtab", "the completion of a shell", "completion") from error
    print(shtab.complete(parser_of(COMMANDS), arguments.shell), end="")
    return 0
