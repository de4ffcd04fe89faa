#!/usr/bin/env python3
"""Write the table "Packages" of docs/browser.md: what was tried in the console in Chromium, and how long imports take.

    scripts/tab_packages.py SITE              all packages
    scripts/tab_packages.py SITE timm keras   these; the lines of others stay

SITE is a site of `scripts/build_site.py --pyodide local`. The programs of tests/browser/console/programs run in it,
each in a page of its own, without the network: `scripts/fetch_packages.py --wheels --ecosystem` brings the packages.
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests"), str(ROOT / "scripts")]

import fetch_packages  # noqa: E402
import fetch_pyodide  # noqa: E402
import prerequisites  # noqa: E402
from fetch_packages import OTHER_WHEELS, WHEELS  # noqa: E402
from playwright.sync_api import Browser, sync_playwright  # noqa: E402
from tests.browser import programs  # noqa: E402
from tests.browser.conftest import serving  # noqa: E402
from tests.browser.consoles import Console  # noqa: E402
from tests.browser.index import Index, tab_index  # noqa: E402

PAGE = ROOT / "docs" / "browser.md"
BEGIN, END = "<!-- packages: scripts/tab_packages.py -->\n", "<!-- end -->\n"
VERSION = """
import importlib.metadata
from packages import TRIED
print(importlib.metadata.version(TRIED.get("{module}", "{module}")))
"""


def row(browser: Browser, site: str, index: Index, module: str) -> str:
    """Try a package in a new page. Return its line of the table."""
    program = programs.source(module)
    tree = ast.parse(program)
    what = f"{(ast.get_docstring(tree) or '').removesuffix('.')}; equal"
    context = browser.new_context()
    index.serve(context)
    console = Console(context.new_page()).open(site)
    programs.prepare(console)
    programs.install(console, module)
    imports = "\n".join(ast.unparse(node) for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom))
    console.run("import os, time, torch, prelude\nos.environ['KERAS_BACKEND'] = 'torch'")
    output = console.run(
        f"start = time.perf_counter()\n{imports}\nprint('took', round(time.perf_counter() - start, 1))"
    )
    version = console.run(VERSION.format(module=module)).strip()
    try:
        programs.compare(console.run(program), module)
    except AssertionError as error:
        what = f"**{str(error).strip().splitlines()[-1]:.80}**"
    context.close()
    found = re.search(r"took (\S+)", output)
    seconds = found[1] if found else "?"
    print(module, version, seconds, what, flush=True)
    return f"| {module} | {version} | {seconds} | {what} |"


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description="Write the table of packages of docs/browser.md.")
    parser.add_argument("site", type=Path)
    parser.add_argument("modules", nargs="*", default=programs.MODULES)
    arguments = parser.parse_args()
    index = tab_index(fetch_packages.fetch_wheels((*WHEELS, *OTHER_WHEELS)), fetch_pyodide.place())
    with sync_playwright() as playwright, serving(arguments.site) as server:
        browser = playwright.chromium.launch(executable_path=prerequisites.chromium(), args=["--no-sandbox"])
        rows = {module: row(browser, server.url, index, module) for module in arguments.modules}
        browser.close()
    text = PAGE.read_text(encoding="utf-8")
    before, former, after = re.split(f"{BEGIN}|{END}", text)
    rows = {found[1]: found[0] for found in re.finditer(r"^\| (\w+) \| \d.*$", former, re.MULTILINE)} | rows
    table = "\n".join(["| package | version | import (s) | ran |", "| --- | --- | --- | --- |", *sorted(rows.values())])
    PAGE.write_text(f"{before}{BEGIN}\n{table}\n\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
