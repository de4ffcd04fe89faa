"""The static site and its server: files, headers, and hosting without special headers."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import tarfile
import urllib.request
import zipfile
from collections.abc import Iterator
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from playwright.sync_api import Page, expect
from pyodide_lock import PyodideLockSpec
from pyodide_lock.utils import add_wheels_to_spec
from support import paths
from support.links import dead_links
from tests.browser.conftest import START_MS, wait_until
from tests.browser.plain_host import serving_plainly

from tallow.io.llama2c import Header
from tallow.site import build as site_module
from tallow.site.build import SiteError, build_site, replaced_site


def read_json(path: Path) -> Any:
    return json.loads(path.read_text())


def load_script(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, paths.ROOT / "scripts" / f"{name}.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def cdn_site(tmp_path_factory: pytest.TempPathFactory, pure_wheel: Path) -> Path:
    folder = tmp_path_factory.mktemp("cdn") / "site"
    build_site(folder, wheel=pure_wheel, pyodide=None)
    return folder


@pytest.fixture
def another_release(tmp_path: Path) -> Path:
    """A copy of Pyodide that the pages do not know."""
    folder = tmp_path / "pyodide"
    folder.mkdir()
    (folder / "package.json").write_text('{"version": "0.25.0"}')
    return folder


def test_lock_file_is_what_pyodide_lock_would_write(site_dir: Path) -> None:
    (wheel,) = site_dir.glob("runtime/*/tallow-*.whl")
    lock = read_json(site_dir / "runtime" / "pyodide-lock.json")
    base = {"info": lock["info"], "packages": {"numpy": lock["packages"]["numpy"]}}
    expected = add_wheels_to_spec(PyodideLockSpec(**base), [wheel]).packages["tallow"].model_dump()
    entry = dict(lock["packages"]["tallow"])
    assert entry.pop("file_name").endswith("/" + expected.pop("file_name"))
    assert sorted(expected.pop("imports")) == entry.pop("imports")
    assert entry == {name: expected[name] for name in entry}


def test_numpy_entry_is_that_of_the_release(pyodide_dir: Path) -> None:
    lock = read_json(pyodide_dir / "pyodide-lock.json")
    assert lock["packages"]["numpy"] == site_module.LOCK_NUMPY
    assert lock["info"].items() <= site_module.LOCK_INFO.items()
    assert load_script("fetch_pyodide").VERSION == site_module.PYODIDE_VERSION


def test_every_file_of_the_lock_exists_with_its_hash(site_dir: Path) -> None:
    runtime = site_dir / "runtime"
    packages = read_json(runtime / "pyodide-lock.json")["packages"]
    assert set(packages) == {"numpy", "tallow"}
    for package in packages.values():
        assert hashlib.sha256((runtime / package["file_name"]).read_bytes()).hexdigest() == package["sha256"]


def read_tar(path: Path) -> dict[str, bytes]:
    with tarfile.open(path) as archive:
        return {member.name: archive.extractfile(member).read() for member in archive}  # type: ignore[union-attr]


# Other archives are packages that the console loads when they are imported.
IN_PARTS = ("python_stdlib", "numpy-", "tallow-", "jinja2-")


def test_parts_have_every_module_once(site_dir: Path) -> None:
    runtime = site_dir / "runtime"
    (parts,) = runtime.glob("python-*")
    with zipfile.ZipFile(parts / "start" / "stdlib.zip") as archive:
        found = [f"lib/python3.14/{name}" for name in archive.namelist()]
    files = {path.name: read_tar(path) for path in parts.rglob("*.tgz")}
    found += [name for content in files.values() for name in content]
    modules = [name for name in found if name.endswith((".pyc", ".so", ".safetensors"))]
    assert len(set(modules)) == len(modules)
    expected = set()
    for archive_file in runtime.rglob("*.[wz][hi][lp]"):
        root = "lib/python3.14/" + ("" if archive_file.name == "python_stdlib.zip" else "site-packages/")
        if "start" not in archive_file.parts and archive_file.name.startswith(IN_PARTS):
            with zipfile.ZipFile(archive_file) as archive:
                names = [name for name in archive.namelist() if name.endswith((".pyc", ".so", ".safetensors"))]
            expected |= {root + name.replace("__pycache__/", "").replace(".cpython-314.pyc", ".pyc") for name in names}
    assert set(modules) == expected
    later = json.loads(files["packages.tgz"]["lib/python3.14/site-packages/later.json"])
    samples = {
        "pydoc": "stdlib",
        "numpy.f2py": "numpy",
        "tallow.keras": "tallow",
        "tallow.models.built_in.spoken": "spoken",
    }
    assert samples.items() <= later.items()
    assert "lib/python3.14/site-packages/tallow/core/tensor.py" in files["tallow.tgz"]  # for tracebacks


def test_cdn_site_brings_no_copy_of_pyodide(cdn_site: Path) -> None:
    assert not list(cdn_site.rglob("pyodide.*"))
    assert read_json(cdn_site / "site.json")["pyodide"] == site_module.CDN
    numpy = read_json(cdn_site / "runtime" / "pyodide-lock.json")["packages"]["numpy"]
    assert numpy["file_name"].startswith(site_module.CDN)


def test_site_is_replaced_as_a_whole(cdn_site: Path, pure_wheel: Path, another_release: Path) -> None:
    stale, old = cdn_site / "stale.html", (cdn_site / "site.json").read_text()
    stale.touch()
    with pytest.raises(SiteError, match=r"0\.25\.0"), replaced_site(cdn_site) as site:
        build_site(site, wheel=pure_wheel, pyodide=another_release)
    assert stale.exists()
    assert (cdn_site / "site.json").read_text() == old
    with replaced_site(cdn_site) as site:
        build_site(site, wheel=pure_wheel, pyodide=None)
    assert not stale.exists()
    assert (cdn_site / "site.json").read_text() == old
    assert [path.name for path in cdn_site.parent.iterdir()] == [cdn_site.name]


def test_site_does_not_replace_anything_else(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(SiteError, match="neither empty nor"), replaced_site(tmp_path):
        pass
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


def test_front_page_links_to_the_documentation_of_the_same_site(tmp_path: Path) -> None:
    front_page, link = tmp_path / "index.html", '<a href="docs/">Documentation</a>'
    front_page.write_bytes((paths.ROOT / "web" / "front" / "index.html").read_bytes())
    assert link not in front_page.read_text(encoding="utf-8")
    load_script("build_site").link_docs(front_page)
    assert front_page.read_text(encoding="utf-8").count(link) == 1


def test_front_page_names_the_addresses_of_the_site_and_its_source(tmp_path: Path) -> None:
    front_page, script = tmp_path / "index.html", load_script("build_site")
    front_page.write_bytes((paths.ROOT / "web" / "front" / "index.html").read_bytes())
    script.set_address(front_page, "https://example.org/tallow")
    script.link_repository(front_page, 'https://example.org/"source"')
    text = front_page.read_text(encoding="utf-8")
    assert '<meta property="og:image" content="https://example.org/tallow/web/pictures/card.png" />' in text
    assert '<a href="https://example.org/&quot;source&quot;">Source</a>' in text
    assert "pip install git+https://example.org/&quot;source&quot;\n" in text


def test_the_headers_of_the_demos_have_links(tmp_path: Path) -> None:
    script = load_script("build_site")
    pages = sorted(paths.ROOT.glob("wasm_examples/*/index.html"))
    for page in pages:
        copy = tmp_path / page.relative_to(paths.ROOT)
        copy.parent.mkdir(parents=True)
        copy.write_text(page.read_text(encoding="utf-8"), encoding="utf-8")
    script.add_to_headers(tmp_path, "https://example.org/?a&b", "Source")
    script.add_to_headers(tmp_path, "../../docs/", "Documentation")
    for page in pages:
        text = (tmp_path / page.relative_to(paths.ROOT)).read_text(encoding="utf-8")
        header = text.partition("<header")[2].partition("</header>")[0]
        assert '<a href="https://example.org/?a&amp;b">Source</a>' in header
        assert '<a href="../../docs/">Documentation</a>' in header


def test_another_release_of_pyodide_is_refused(tmp_path: Path, pure_wheel: Path, another_release: Path) -> None:
    with pytest.raises(SiteError, match=r"0\.25\.0"):
        build_site(tmp_path / "site", wheel=pure_wheel, pyodide=another_release)


def test_presets_have_the_sizes_of_their_models() -> None:
    # The table of models in llama2.c's README.
    sizes = {
        "stories15M": (288, 768, 6, 6, 6, 32000, 256),
        "stories42M": (512, 1376, 8, 8, 8, 32000, 1024),
        "stories110M": (768, 2048, 12, 12, 12, 32000, 1024),
    }
    expected = {name: Header(*size, shared_classifier=True, version=0).file_bytes for name, size in sizes.items()}
    presets = read_json(paths.ROOT / "wasm_examples" / "llama2c" / "presets.json")
    assert {preset["name"]: preset["bytes"] for preset in presets} == expected


def get(site: str, path: str, **headers: str) -> HTTPResponse:
    """Send one request, without a client's usual handling of redirects and `..`."""
    connection = HTTPConnection(site.removeprefix("http://").rstrip("/"))
    connection.request("GET", path, headers=headers)
    response = connection.getresponse()
    response.read()
    connection.close()
    return response


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/", "text/html; charset=utf-8"),
        ("/web/tallow.js", "text/javascript; charset=utf-8"),
        ("/web/style.css", "text/css; charset=utf-8"),
        ("/runtime/pyodide-lock.json", "application/json"),
        ("/{pyodide}pyodide.mjs", "text/javascript; charset=utf-8"),
        ("/{pyodide}pyodide.asm.wasm", "application/wasm"),
    ],
)
def test_every_answer_isolates_and_names_its_type(site: str, site_dir: Path, path: str, kind: str) -> None:
    response = get(site, path.format_map(read_json(site_dir / "site.json")))
    assert response.status == 200
    assert response.headers["Content-Type"] == kind
    assert response.headers["Cross-Origin-Opener-Policy"] == "same-origin"
    assert response.headers["Cross-Origin-Embedder-Policy"] == "require-corp"


def test_site_json_has_the_hash_of_each_file_of_the_runtime(site_dir: Path) -> None:
    """The service worker keeps no other files, so that pages without a network need all of them."""
    site = read_json(site_dir / "site.json")
    files = {path for path in site_dir.glob("runtime/*/**/*") if path.is_file()}
    assert site["files"] == {
        path.relative_to(site_dir).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in files
    }
    assert set(site["libraries"].values()) <= set(site["files"])


def test_pages_are_revalidated_and_the_runtime_is_immutable(site: str, site_dir: Path) -> None:
    page = get(site, "/web/tallow.js")
    assert page.headers["Cache-Control"] == "no-cache"
    again = get(site, "/web/tallow.js", **{"If-None-Match": page.headers["ETag"]})
    assert again.status == 304
    assert (
        "immutable" in get(site, f"/{read_json(site_dir / 'site.json')['pyodide']}pyodide.mjs").headers["Cache-Control"]
    )


@pytest.mark.parametrize("path", ["/nothing", "/runtime/", "/models/nothing.bin", "/../../../../etc/passwd"])
def test_nothing_else_is_served(site: str, path: str) -> None:
    assert get(site, path).status == 404


@pytest.fixture
def plain_host(site_dir: Path) -> Iterator[str]:
    with serving_plainly(site_dir) as host:
        yield host.url


def test_plain_host_is_isolated_by_the_service_worker(page: Page, plain_host: str) -> None:
    page.goto(f"{plain_host}wasm_examples/llama2c/")
    wait_until(page, "crossOriginIsolated")
    expect(page.get_by_test_id("status")).to_have_text("Ready.", timeout=START_MS)


def test_plain_host_does_not_reload_a_page_in_use(page: Page, plain_host: str, model: Path, tokenizer: Path) -> None:
    page.goto(f"{plain_host}wasm_examples/llama2c/")
    page.get_by_test_id("model-file").set_input_files(model)
    page.get_by_test_id("tokenizer-file").set_input_files(tokenizer)
    page.get_by_test_id("steps").fill("5")
    page.get_by_test_id("generate").click()
    expect(page.get_by_test_id("status")).to_have_text("Done.", timeout=START_MS)
    page.reload()
    wait_until(page, "crossOriginIsolated")


def test_pages_have_no_dead_links(site_dir: Path) -> None:
    assert dead_links(site_dir) == []


def test_gallery_leads_to_every_demo(page: Page, site: str) -> None:
    page.goto(site)
    links = page.locator(".demo a").evaluate_all("(links) => links.map((link) => link.href)")
    demos = {path.parent.name for path in (paths.ROOT / "wasm_examples").glob("*/index.html")}
    assert {link.rstrip("/").split("/")[-1] for link in links} == demos
    for link in links:
        with urllib.request.urlopen(link) as response:
            assert response.status == 200
