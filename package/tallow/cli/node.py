"""Run a script in Node."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path


def run_in_node(script: Path, *arguments: str, timeout_s: float) -> bool:
    """Run an `.mjs` file with arguments, and return whether it succeeded: not without Node, nor after `timeout_s`."""
    node = shutil.which("node")
    if node is None:
        return False
    try:
        subprocess.run([node, str(script), *arguments], check=True, capture_output=True, timeout=timeout_s)
    except (OSError, subprocess.SubprocessError):
        return False
    return True
