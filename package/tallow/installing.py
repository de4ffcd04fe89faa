"""What to install for an extra of tallow: its packages by name.

tallow itself is on no package index yet, so pip must not be asked for the name `tallow`: tallow is installed from a
folder or from a git repository. The packages of its extras are on PyPI, and the metadata of tallow lists them.
"""

from __future__ import annotations

import re
import sys


def requirements(extra: str) -> list[str]:
    """The requirements of an extra, such as `["soundfile>=0.13", "soxr>=0.5"]`; none if tallow is not installed."""
    from importlib import metadata  # only for an error: it takes milliseconds to import

    try:
        lines = metadata.requires("tallow") or []
    except metadata.PackageNotFoundError:  # imported from a folder of sources
        return []
    return [line.partition(";")[0].strip() for line in lines if re.search(rf"extra == ['\"]{extra}['\"]", line)]


def command(extra: str, *, otherwise: str) -> str:
    """The command that installs what an extra has, in a browser tab a line of Python.

    Args:
        otherwise: the package to name if the metadata of tallow is not there.
    """
    packages = requirements(extra) or [otherwise]
    if sys.platform == "emscripten":
        return f"import micropip; await micropip.install({packages})"
    return "pip install " + " ".join(
        f'"{package}"' if re.search(r"[<>=\[]", package) else package for package in packages
    )
