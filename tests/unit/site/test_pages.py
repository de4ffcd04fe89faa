"""The rooms of web/, and the one folder that sites make of them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from support.paths import ROOT

from tallow.site.browser_wheel import SiteError
from tallow.site.pages import copy_pages, join_rooms

pytestmark = pytest.mark.native  # reads the checkout

# A room imports from itself and from those after it.
ROOMS = ("npm", "front", "sound", "page", "worker", "boot", "threads")
IMPORT = re.compile(r'^import [^;]*? from "\.\./(\w+)/', re.MULTILINE)


def test_rooms_become_one_folder_and_imports_follow(tmp_path: Path) -> None:
    files = {
        "web/page/a.js": 'import { b } from "../worker/b.js"; import("./c.js"); const folder = new URL("..", HERE);',
        "web/page/c.js": "",
        "web/worker/b.js": '/** @import { C } from "../page/c.js" */',
        "web/front/pictures/card.png": "",
        "web/README.md": "rooms",
        "wasm_examples/chat/app.js": 'import { a } from "../../web/page/a.js"; import "./own.js";',
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    join_rooms(tmp_path)
    found = {path.relative_to(tmp_path).as_posix(): path.read_text() for path in tmp_path.rglob("*.*")}
    assert found == {
        "web/a.js": 'import { b } from "./b.js"; import("./c.js"); const folder = new URL("..", HERE);',
        "web/c.js": "",
        "web/b.js": '/** @import { C } from "./c.js" */',
        "web/pictures/card.png": "",
        "wasm_examples/chat/app.js": 'import { a } from "../../web/a.js"; import "./own.js";',
    }


def test_two_files_of_one_name_are_refused(tmp_path: Path) -> None:
    for room in ("page", "worker"):
        (tmp_path / "web" / room).mkdir(parents=True)
        (tmp_path / "web" / room / "a.js").touch()
    with pytest.raises(SiteError, match=r"several rooms have a\.js"):
        join_rooms(tmp_path)


def test_every_module_of_the_pages_names_modules_that_are_there(tmp_path: Path) -> None:
    copy_pages(tmp_path)
    for module in (*tmp_path.glob("web/*.js"), *tmp_path.glob("wasm_examples/*/*.js")):
        for name in re.findall(r'(?:from|import\() ?"(\.[^"]+)"', module.read_text(encoding="utf-8")):
            assert (module.parent / name).is_file(), (module, name)


@pytest.mark.parametrize("room", ROOMS)
def test_rooms_import_in_one_direction(room: str) -> None:
    assert {path.name for path in (ROOT / "web").iterdir() if path.is_dir()} == {*ROOMS}
    above = ROOMS[: ROOMS.index(room)]
    for module in (ROOT / "web" / room).glob("*.js"):
        named = {*IMPORT.findall(module.read_text(encoding="utf-8"))}
        assert named.isdisjoint(above), (module.name, named)
