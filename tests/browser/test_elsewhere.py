"""tallow in the Pyodide of others, as docs/browser.md says."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import venv
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from playwright.sync_api import Page, expect
from support import builds, paths
from support.guides import blocks
from tests.browser.conftest import START_MS
from tests.browser.plain_host import serving_plainly

GUIDE = paths.ROOT / "docs" / "browser.md"
(PYSCRIPT_PAGE,) = (block for block in blocks(GUIDE, "html") if "pyscript" in block)
KERNEL = "@jupyterlite/pyodide-kernel-extension:kernel"
ISOLATED = {"Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Embedder-Policy": "require-corp"}
JUPYTERLITE = ("jupyterlite-core==0.8.6", "jupyterlite-pyodide-kernel==0.8.6")
# What its kernel installs from PyPI as it starts.
OF_THE_KERNEL = """asttokens comm decorator executing ipython ipython-pygments-lexers jedi matplotlib-inline parso
prompt-toolkit pure-eval pygments stack-data traitlets typing-extensions wcwidth"""
MARIMO = "0.25.2"
PYODIDE_OF_MARIMO = "314.0.0"
# What marimo-base needs in a tab, as pure Python.
OF_THE_NOTEBOOK = """docutils itsdangerous jedi<0.21 markdown narwhals packaging parso pygments pymdown-extensions<12
pyodide-http python-multipart tomlkit"""
(MARIMO_CELL,) = re.findall(r"^\| marimo \| `(.+?)`", GUIDE.read_text(encoding="utf-8"), re.MULTILINE)
CDN = re.compile(r"https://cdn\.jsdelivr\.net/npm/(@pyscript/core@[\d.]+)/dist/")


@pytest.fixture(scope="session")
def pyscript() -> Path:
    """Return the folder of PyScript's modules, from npm, downloaded to the cache on first use."""
    if not shutil.which("npm"):
        pytest.skip("npm is not on PATH")
    found = CDN.search(PYSCRIPT_PAGE)
    assert found
    folder = paths.cache_dir() / found[1].replace("/", "-")
    modules = folder / "node_modules" / "@pyscript" / "core" / "dist"
    if not modules.exists():
        subprocess.run(["npm", "install", "--silent", "--no-save", "--prefix", folder, found[1]], check=True)
    return modules


def test_pyscript_page_of_the_guide(
    page: Page, pyscript: Path, pyodide_dir: Path, pure_wheel: Path, tmp_path: Path
) -> None:
    """With local copies in place of the CDN and the host, and the module of docs/threads.md."""
    (tmp_path / "core").symlink_to(pyscript)
    builds.pyodide_with_threads(tmp_path / "pyodide", pyodide_dir)
    shutil.copy(pure_wheel, tmp_path)
    with serving_plainly(tmp_path, ISOLATED) as host:
        text = CDN.sub("core/", PYSCRIPT_PAGE).replace("https://HOST/", host.url)
        text = text.replace("dim=0))", "dim=0), tl.kernels.info().summary)")
        config = json.dumps({"interpreter": f"{host.url}pyodide/pyodide-shared.mjs"})[1:-1]
        (tmp_path / "index.html").write_text(text.replace("config='{", f"config='{{{config}, "), encoding="utf-8")
        page.goto(host.url)
        expect(page.locator("body")).to_contain_text("tensor([0.2689, 0.7311])", timeout=START_MS)
        expect(page.locator("body")).to_contain_text("2 threads")


@pytest.fixture(scope="session")
def jupyterlite() -> Path:
    """Return the folder of JupyterLite's site, from PyPI, built in the cache on first use. It needs no other host."""
    folder = paths.cache_dir() / "-".join(part.replace("==", "-") for part in JUPYTERLITE)
    if not (folder / "site").exists():
        shutil.rmtree(folder, ignore_errors=True)
        venv.create(folder / "venv", with_pip=True)
        programs = folder / "venv" / "bin"
        pip = (programs / "python", "-m", "pip", "--quiet", "--disable-pip-version-check")
        subprocess.run([*pip, "install", *JUPYTERLITE], check=True)
        pure = ("--only-binary=:all:", "--platform=any", "--python-version=3.14", "--no-deps")
        subprocess.run([*pip, "download", *pure, "-d", folder / "wheels", *OF_THE_KERNEL.split()], check=True)
        wheels = [f"--piplite-wheels={wheel}" for wheel in (folder / "wheels").iterdir()]
        (folder / "empty").mkdir()
        command = [programs / "jupyter-lite", "build", "--output-dir", folder / "unfinished", *wheels]
        subprocess.run(command, check=True, cwd=folder / "empty", capture_output=True)
        (folder / "unfinished").rename(folder / "site")
    return folder / "site"


THREADS = """
import asyncio
import tallow as tl

tl.set_num_threads(2)
a = tl.rand(400, 400)
for _ in range(1000):
    a @ a
    if tl.kernels.bindings.tab_threads.parts_of_others():
        break
    await asyncio.sleep(0.05)
print(f"{tl.softmax(tl.tensor([0.0, 1.0]), dim=0)} by {tl.kernels.info().summary}, others did", end=" ")
print(tl.kernels.bindings.tab_threads.parts_of_others())
"""


def test_jupyterlite_with_threads(
    page: Page, jupyterlite: Path, pyodide_dir: Path, pure_wheel: Path, tmp_path: Path
) -> None:
    """docs/browser.md installs tallow, and docs/threads.md gives it threads."""
    site = tmp_path / "site"
    shutil.copytree(jupyterlite, site, copy_function=os.link)
    shutil.copy(pure_wheel, site)
    builds.pyodide_with_threads(site / "pyodide", pyodide_dir)
    builds.change(site / "pyodide" / "pyodide-lock.json", partial(with_what_there_is, site / "pyodide"))
    builds.change(site / "jupyter-lite.json", with_pyodide)
    with serving_plainly(site, ISOLATED) as host:
        cells = (f"%pip install {host.url}{pure_wheel.name}", THREADS)
        query = "".join(f"&code={quote(cell)}" for cell in cells)
        page.goto(f"{host.url}repl/index.html?kernel=python{query}")
        expect(page.locator("body")).to_contain_text(
            "tensor([0.2689, 0.7311]) by wasm relaxed-simd, 2 threads, others did 1", timeout=START_MS
        )


def with_what_there_is(folder: Path, lock: str) -> str:
    """Leave out the packages that a local copy of Pyodide lacks; JupyterLite finds them in its own folder then."""
    changed = json.loads(lock)
    found = {name: each for name, each in changed["packages"].items() if (folder / each["file_name"]).exists()}
    return json.dumps(changed | {"packages": found})


def with_pyodide(settings: str) -> str:
    """Set the address of Pyodide's module in jupyter-lite.json."""
    changed = json.loads(settings)
    plugins = changed["jupyter-config-data"].setdefault("litePluginSettings", {})
    plugins.setdefault(KERNEL, {})["pyodideUrl"] = "./pyodide/pyodide-shared.mjs"
    return json.dumps(changed)


NOTEBOOK = f"""
import marimo
app = marimo.App()

@app.cell
def _(tl):
    tl.softmax(tl.tensor([0.0, 1.0]), dim=0)

@app.cell
async def _():
    {MARIMO_CELL}
    return (tl,)
"""


@pytest.fixture(scope="session")
def marimo() -> Path:
    """Return the folder of an exported notebook, with the Pyodide and the packages that marimo loads from its CDN.

    They are from PyPI and npm, downloaded to the cache on first use. The folder is without NumPy and micropip.
    """
    if not shutil.which("npm"):
        pytest.skip("npm is not on PATH")
    folder = paths.cache_dir() / f"marimo-{MARIMO}-{hashlib.sha256(NOTEBOOK.encode()).hexdigest()[:8]}"
    if not (folder / "site").exists():
        shutil.rmtree(folder, ignore_errors=True)
        venv.create(folder / "venv", with_pip=True)
        programs = folder / "venv" / "bin"
        pip = (programs / "python", "-m", "pip", "--quiet", "--disable-pip-version-check")
        subprocess.run([*pip, "install", f"marimo=={MARIMO}", "uv"], check=True)
        (folder / "notebook.py").write_text(NOTEBOOK, encoding="utf-8")
        unfinished = folder / "unfinished"
        export = [programs / "marimo", "export", "html-wasm", "notebook.py", "-o", unfinished]
        environment = os.environ | {"PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"}
        subprocess.run(export, check=True, cwd=folder, env=environment, capture_output=True)
        subprocess.run(["npm", "install", "--silent", "--prefix", folder, f"pyodide@{PYODIDE_OF_MARIMO}"], check=True)
        shutil.copytree(folder / "node_modules" / "pyodide", unfinished / "pyodide")
        download = (*pip, "download", "--only-binary=:all:", "--no-deps", "-d", unfinished / "pyodide")
        pure = ("--platform=any", "--python-version=3.14")
        subprocess.run([*download, *pure, f"marimo-base=={MARIMO}", *OF_THE_NOTEBOOK.split()], check=True)
        compiled = ("--platform=pyemscripten_2026_0_wasm32", "--python-version=3.14", "--abi=cp314")
        subprocess.run([*download, *compiled, "msgspec"], check=True)
        subprocess.run([*download, "pyyaml"], check=True)  # works without its extension
        builds.change(unfinished / "pyodide" / "pyodide-lock.json", partial(with_wheels, unfinished / "pyodide"))
        builds.change(unfinished / "index.html", with_own_pyodide)
        unfinished.rename(folder / "site")
    return folder / "site"


def test_marimo_notebook_of_the_guide(
    page: Page, marimo: Path, pyodide_dir: Path, pure_wheel: Path, tmp_path: Path
) -> None:
    """A cell that uses tallow comes before the one that installs it."""
    site = tmp_path / "site"
    shutil.copytree(marimo, site, copy_function=os.link)
    shutil.copy(pure_wheel, site)
    lock = json.loads((pyodide_dir / "pyodide-lock.json").read_bytes())
    packages = {name: lock["packages"][name] for name in ("micropip", "numpy")}
    for package in packages.values():
        shutil.copy(pyodide_dir / package["file_name"], site / "pyodide")
    builds.change(site / "pyodide" / "pyodide-lock.json", partial(with_packages, packages))
    with serving_plainly(site) as host:
        here, there = (quote(address, safe="") for address in ("https://HOST/", host.url))
        builds.change(site / "index.html", lambda text: text.replace(here, there))
        page.goto(host.url)
        expect(page.locator("body")).to_contain_text("tensor([0.2689, 0.7311])", timeout=START_MS)


def with_wheels(folder: Path, lock: str) -> str:
    """Replace the packages of a lock by the wheels in a folder. marimo-base depends on all others."""
    packages: dict[str, dict[str, Any]] = {}
    for wheel in folder.glob("*.whl"):
        name, version, *_ = wheel.name.split("-")
        name = name.lower().replace("_", "-")
        packages[name] = {"name": name, "version": version, "file_name": wheel.name, "depends": [], "imports": []}
        packages[name] |= {"install_dir": "site", "package_type": "package", "unvendored_tests": False}
        packages[name]["sha256"] = hashlib.sha256(wheel.read_bytes()).hexdigest()
    packages["marimo-base"]["depends"] = [name for name in packages if name != "marimo-base"]
    return json.dumps(json.loads(lock) | {"packages": packages})


def with_packages(packages: dict[str, Any], lock: str) -> str:
    changed = json.loads(lock)
    return json.dumps(changed | {"packages": changed["packages"] | packages})


def with_own_pyodide(text: str) -> str:
    addresses = 'data-pyodide-index-url="pyodide/" data-pyodide-lockfile-url="pyodide/pyodide-lock.json"'
    return text.replace("<marimo-wasm ", f"<marimo-wasm {addresses} ")
