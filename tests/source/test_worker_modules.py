"""web/tallow.js lists the modules of the worker."""

from __future__ import annotations

import re

from support.paths import ROOT

WEB = ROOT / "web"


def imported_by(name: str) -> set[str]:
    """Return the modules that a module imports, and those that they import."""
    text = (WEB / name).read_text(encoding="utf-8")
    found = set(re.findall(r'^import .*?"\./([\w-]+\.js)";$', text, re.MULTILINE | re.DOTALL))
    return found.union(*map(imported_by, found))


def test_page_lists_the_modules_of_the_worker() -> None:
    text = (WEB / "tallow.js").read_text(encoding="utf-8")
    listed = re.findall(r'"([\w-]+\.js)"', text.partition("WORKER_MODULES = [")[2].partition("]")[0])
    assert listed == [*sorted(imported_by("worker.js")), "worker.js"]
