"""The pages as a site has them: `wasm_examples/` as in the checkout, and the rooms of `web/` as one folder.

A room is a subfolder of `web/`, see web/README.md. Users, caches and other sites know its files as `web/NAME`, so a
file can change its room and keep its address.
"""

from __future__ import annotations

import os
import re
import shutil
import tarfile
from collections.abc import Mapping
from pathlib import Path

import tallow
from tallow.site.browser_wheel import PAGES, SiteError

FOLDERS = ("web", "wasm_examples")
SERVER = "wasm_examples/server"  # the page of `tallow serve`, see server_pages.py; a site has no server for it
MODULE_PATH = re.compile(r'(?<=")\.\.?/[\w./-]+\.[jt]s(?=")')  # as in `import ... from "../worker/protocol.js"`


def copy_pages(out: Path) -> None:
    """Write `web/` and `wasm_examples/` to a folder: from the installed package's archive, or the checkout.

    Raises:  SiteError if neither is there
    """
    package = Path(tallow.__file__).parent
    archive, checkout = package / PAGES, package.parents[1]
    if archive.is_file():
        with tarfile.open(archive) as pages:
            pages.extraction_filter = getattr(tarfile, "data_filter", None)  # Python 3.11.3 and older have none
            pages.extractall(out)
    elif (checkout / "web" / "page" / "tallow.js").is_file():
        for folder in FOLDERS:
            shutil.copytree(checkout / folder, out / folder, ignore=shutil.ignore_patterns("__pycache__"))
    else:
        hint = "install tallow again: pip install --force-reinstall"
        raise SiteError(f"web pages not found near {package}", hint=hint)
    join_rooms(out)


def join_rooms(site: Path) -> None:
    """Move the files of all rooms to `web/`, and change the paths by which modules import them.

    What is not in a room (its readme, the settings of Node and TypeScript) is for the checkout, and is removed.

    Raises:  SiteError if two rooms have files of one name
    """
    web = site / "web"
    rooms = sorted(path for path in web.iterdir() if path.is_dir())
    moves = {path: web / path.name for room in rooms for path in sorted(room.iterdir())}
    if len({*moves.values()}) < len(moves):
        names = [path.name for path in moves]
        twice = sorted({name for name in names if names.count(name) > 1})
        raise SiteError(f"{web}: several rooms have {', '.join(twice)}", hint="rename a file")
    for path in [path for path in web.iterdir() if path.is_file()]:
        path.unlink()
    for module in (*web.glob("*/*.[jt]s"), *site.glob("wasm_examples/*/*.js")):
        module.write_text(_with_moved_imports(module, moves), encoding="utf-8")
    for path, target in moves.items():
        path.rename(target)
    for room in rooms:
        room.rmdir()


def _with_moved_imports(module: Path, moves: Mapping[Path, Path]) -> str:
    """Return the text of a module for its new place, with the new places of the modules that it names."""
    folder = moves.get(module, module).parent

    def moved(found: re.Match[str]) -> str:
        named = Path(os.path.normpath(module.parent / found[0]))
        path = Path(os.path.relpath(moves.get(named, named), folder)).as_posix()
        return path if path.startswith("../") else f"./{path}"

    return MODULE_PATH.sub(moved, module.read_text(encoding="utf-8"))
