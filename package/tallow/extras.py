"""The packages of tallow's extras, and the command that installs them.

tallow itself is not on a package index yet, so no command may name `tallow[extra]`: it is installed from a folder or a
git repository. The packages of its extras are on PyPI, and the metadata of tallow lists them.
"""

from __future__ import annotations

import re
import sys


def requirements(extra: str) -> list[str]:
    """Return the requirements of an extra, such as `["soundfile>=0.13"]`; none if tallow is not installed."""
    from importlib import metadata  # only for an error: it takes milliseconds to import

    try:
        lines = metadata.requires("tallow") or []
    except metadata.PackageNotFoundError:  # imported from a source folder
        return []
    return [line.partition(";")[0].strip() for line in lines if re.search(rf"extra == ['\"]{extra}['\"]", line)]


def install_command(extra: str, *, otherwise: str) -> str:
    """Return the command that installs the packages of an extra; in a browser tab, a line of Python.

    Args:
        otherwise: the package to name if the metadata of tallow is missing.
    """
    packages = requirements(extra) or [otherwise]
    if sys.platform == "emscripten":
        return f"import micropip; await micropip.install({packages})"
    return "pip install " + " ".join(
        f'"{package}"' if re.search(r"[<>=\[]", package) else package for package in packages
    )
