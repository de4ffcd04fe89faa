"""Run a script in Node."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

RELAXED_SIMD = "--experimental-wasm-relaxed-simd"  # for the kernels that browsers load: Node 20; newer ones need none
OPTIONS_TIMEOUT_S = 60


def run_in_node(script: Path, *arguments: str, timeout_s: float, options: Iterable[str] = ()) -> bool:
    """Run an `.mjs` file with arguments, and return whether it succeeded: not without Node, nor after `timeout_s`. What
    Node says about a failure is printed.

    Args:  options: of Node; those that this Node does not have are left out
    """
    node = shutil.which("node")
    if node is None:
        return False
    try:
        command = [node, *known_options(node, options), str(script), *arguments]
        subprocess.run(command, check=True, capture_output=True, text=True, errors="replace", timeout=timeout_s)
    except subprocess.CalledProcessError as error:
        print(f"{script.name} failed in Node:\n{error.stderr}", file=sys.stderr)
        return False
    except (OSError, subprocess.SubprocessError):
        return False
    return True


def known_options(node: str, wanted: Iterable[str]) -> list[str]:
    """Return those of the options of V8 that this Node has.

    Raises:  OSError, subprocess.SubprocessError if Node fails
    """
    wanted = list(wanted)
    if not wanted:
        return []
    command = [node, "--v8-options"]
    known = subprocess.run(command, check=True, capture_output=True, text=True, timeout=OPTIONS_TIMEOUT_S).stdout
    return [option for option in wanted if option in known]
