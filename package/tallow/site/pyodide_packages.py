"""Pyodide's packages beside the site, for the console: matplotlib and micropip, and the list of all."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from tallow.site.browser_wheel import SiteError

LOCK = "pyodide-lock.json"
LOCAL = ("matplotlib", "micropip")  # with what they depend on: 10 MB


def copy_packages(source: Path, folder: Path, *, cdn: str, without: Iterable[str], wanted: Iterable[str] = ()) -> None:
    """Copy packages, and write the list of all packages of the distribution: where each is, and what it depends on.

    Args:
        source: a copy of Pyodide made by scripts/fetch_pyodide.py. Packages that it lacks are on the CDN.
        folder: the site's copy of Pyodide.
        without: packages that are not in the list, because the site has its own.
        wanted: packages to copy besides those of every site.

    Raises:  SiteError for a name that the distribution does not have, and for any if the copy has no list
    """
    if not (source / LOCK).is_file():
        if names := ", ".join(wanted):
            raise SiteError(f"{names}: {source} has no {LOCK}", hint="make the copy by scripts/fetch_pyodide.py")
        return
    lock = json.loads((source / LOCK).read_text(encoding="utf-8"))
    packages = {name: entry for name, entry in lock["packages"].items() if name not in without}
    if unknown := sorted(set(wanted) - {*packages, *without}):
        raise SiteError(f"not in Pyodide's distribution: {', '.join(unknown)}", hint=f"{source / LOCK} lists what is")
    local = set(_with_dependencies([*LOCAL, *wanted], packages))
    for name, entry in packages.items():
        file_name = entry["file_name"]
        if name in local and (source / file_name).is_file():
            shutil.copyfile(source / file_name, folder / file_name)
        else:
            entry["file_name"] = f"{cdn}{file_name}"
    listed = {"info": lock["info"], "packages": packages}
    (folder / LOCK).write_text(json.dumps(listed, sort_keys=True), encoding="utf-8")


def _with_dependencies(names: Iterable[str], packages: dict[str, Any]) -> Iterator[str]:
    for name in names:
        if name in packages:
            yield name
            yield from _with_dependencies(packages[name]["depends"], packages)
