"""One file for the modules of the pages' worker."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tallow.site.joined_modules import join_modules
from tallow.site.pages import copy_pages

pytestmark = pytest.mark.native
MODULES = {
    "first.js": """
import * as third from "./third.js";
import {
  count as counted,
  Box,
} from "./second.js";
const own = "first";
third.place().then((place) => console.log(own, counted(), new Box().value, place, [...third.numbers()]));
""",
    "second.js": """
import { LIMIT } from "./third.js";
const own = "second";
export class Box {
  value = own;
}
export function count() {
  return LIMIT;
}
""",
    "third.js": """
console.log("runs once");
export const LIMIT = 3;
export async function place() {
  return import.meta.url.split("/").pop();
}
export function* numbers() {
  yield LIMIT;
}
""",
}


def test_joined_modules_do_what_they_did(tmp_path: Path) -> None:
    if not shutil.which("node"):
        pytest.skip("needs Node")
    for name, text in MODULES.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "package.json").write_text('{"type": "module"}')
    separate = _printed(tmp_path / "first.js")
    assert separate == "runs once\nfirst 3 second third.js [ 3 ]\n"
    joined = tmp_path / "joined.js"
    joined.write_text(join_modules(tmp_path / "first.js"))
    assert _printed(joined) == separate


@pytest.mark.parametrize("line", ['export * from "./second.js";', 'import "./second.js";', "export default 1;"])
def test_other_forms_are_refused(line: str, tmp_path: Path) -> None:
    (tmp_path / "first.js").write_text(line)
    with pytest.raises(ValueError, match=r"first\.js: cannot join"):
        join_modules(tmp_path / "first.js")


def test_worker_imports_nothing(tmp_path: Path) -> None:
    copy_pages(tmp_path)
    assert not re.search(r'^import .* from "\./', join_modules(tmp_path / "web" / "worker.js"), re.MULTILINE)


def _printed(script: Path) -> str:
    return subprocess.run(["node", script], capture_output=True, text=True, check=True).stdout
