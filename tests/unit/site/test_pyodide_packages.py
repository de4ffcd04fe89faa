"""site/pyodide_packages.py: packages beside a site, and the list of all."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from tallow.site.browser_wheel import SiteError
from tallow.site.pyodide_packages import LOCK, copy_packages

CDN = "https://cdn.example/full/"
DEPENDS = {"matplotlib": ["pillow", "numpy"], "pillow": [], "numpy": [], "scipy": ["numpy"], "micropip": ["packaging"]}


def copied(source: Path, folder: Path, present: list[str], wanted: Sequence[str] = ()) -> dict[str, str]:
    """Copy from a Pyodide with these files; return the place of each package of the list."""
    packages = {name: {"file_name": f"{name}.whl", "depends": names} for name, names in DEPENDS.items()}
    (source / LOCK).write_text(json.dumps({"info": {"python": "3"}, "packages": packages}))
    for name in present:
        (source / f"{name}.whl").write_text(name)
    copy_packages(source, folder, cdn=CDN, without=["numpy"], wanted=wanted)
    lock = json.loads((folder / LOCK).read_text())
    assert lock["info"] == {"python": "3"}
    return {name: package["file_name"] for name, package in lock["packages"].items()}


def test_matplotlib_and_what_it_needs_are_local_and_others_on_the_cdn(tmp_path: Path) -> None:
    source, folder = tmp_path / "source", tmp_path / "folder"
    source.mkdir()
    folder.mkdir()
    places = copied(source, folder, ["matplotlib", "pillow", "numpy", "scipy"])
    assert places == {
        "matplotlib": "matplotlib.whl",
        "pillow": "pillow.whl",
        "scipy": f"{CDN}scipy.whl",
        "micropip": f"{CDN}micropip.whl",
    }
    assert sorted(path.name for path in folder.iterdir()) == sorted(["matplotlib.whl", "pillow.whl", LOCK])


def test_packages_that_are_wanted_are_local_where_the_copy_has_them(tmp_path: Path) -> None:
    (folder := tmp_path / "folder").mkdir()
    places = copied(tmp_path, folder, ["matplotlib", "pillow", "scipy"], ["scipy", "micropip"])
    assert (places["scipy"], places["micropip"]) == ("scipy.whl", f"{CDN}micropip.whl")
    with pytest.raises(SiteError, match="nosuch"):
        copied(tmp_path, folder, [], ["nosuch"])


def test_a_copy_without_a_list_has_no_packages(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    copy_packages(tmp_path, folder, cdn=CDN, without=["numpy"])
    assert not list(folder.iterdir())
    with pytest.raises(SiteError, match="scipy"):
        copy_packages(tmp_path, folder, cdn=CDN, without=["numpy"], wanted=["scipy"])
