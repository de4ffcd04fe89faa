"""The static site: pages, their wheel, Pyodide or its CDN's URL, and the lock file.

index.html, service-worker.js         the front page; offline use, and isolation for hosts that cannot send headers
web/, wasm_examples/                  the modules and the pages, see pages.py
site.json                             paths of the runtime, hashes of its files, models to offer, a hash of the pages
runtime/pyodide-lock.json             NumPy and tallow, with their hashes
runtime/python-<hash>/                with a copy of Pyodide: Python in parts, see parts.py
runtime/<hash>/tallow-*.whl           the hash in the path prevents stale copies
runtime/pyodide-<version>-<hash>/     only if Pyodide is not loaded from its CDN; with a second main module, packages
runtime/snapshot-<hash>/              likewise: Python's memory after the imports of the pages
runtime/huggingface-tokenizers-<version>/    likewise, for the pages that need it; and runtime/markdown-<versions>/
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tallow.io.regular import read_regular
from tallow.io.whole_folder import replaced_folder
from tallow.site.browser_wheel import SiteError, pack_wheel, top_level_packages
from tallow.site.bytecode import add_bytecode
from tallow.site.joined_modules import join_modules
from tallow.site.page_heads import write_heads
from tallow.site.pages import SERVER, copy_pages
from tallow.site.parts import write_parts
from tallow.site.pyodide_packages import copy_packages
from tallow.site.shared_module import write_shared_module
from tallow.site.snapshot import Runtime, write_snapshot
from tallow.site.template_engine import pack_template_engine

PYODIDE_VERSION = "314.0.3"
CDN = f"https://cdn.jsdelivr.net/pyodide/v{PYODIDE_VERSION}/full/"
ENTRY, DESCRIPTION = "index.html", "site.json"
STDLIB = "python_stdlib.zip"
STDLIB_PLACE, SITE_PACKAGES = "/lib/python314.zip", "/lib/python3.14/site-packages"  # where Pyodide puts them
MODULE = "pyodide.asm.wasm"
PYODIDE_CORE = ("pyodide.mjs", "pyodide.asm.mjs", MODULE, STDLIB)

# From the lock file of that release, without its 350 other packages: a smaller file loads faster.
LOCK_INFO = {
    "abi_version": "2026_0",
    "arch": "wasm32",
    "platform": "emscripten_5_0_3",
    "python": "3.14.0",
    "version": PYODIDE_VERSION,
}
NUMPY_WHEEL = "numpy-2.4.3-cp314-cp314-pyemscripten_2026_0_wasm32.whl"
LOCK_NUMPY = {
    "name": "numpy",
    "version": "2.4.3",
    "file_name": NUMPY_WHEEL,
    "install_dir": "site",
    "sha256": "0cad9c1b91f0082e4f959bc0e0bf5835a2efbba6ab3b1e9d1fe6e7e564cca98e",
    "package_type": "package",
    "imports": ["numpy"],
    "depends": [],
    "unvendored_tests": False,
}

# Pages ask for Jinja, which renders chat templates, by the name "jinja2". These are the CDN's.
LOCK_JINJA = {
    name.lower(): {
        "name": name,
        "version": version,
        "file_name": f"{CDN}{file_name}",
        "install_dir": "site",
        "sha256": sha256,
        "package_type": "package",
        "imports": [name.lower()],
        "depends": depends,
        "unvendored_tests": False,
    }
    for name, version, file_name, sha256, depends in (
        (
            "Jinja2",
            "3.1.6",
            "jinja2-3.1.6-py3-none-any.whl",
            "e92e71ef947608f60ab57f223b3c9ffedfa261a649d0301524a940ed393ee833",
            ["markupsafe"],
        ),
        (
            "MarkupSafe",
            "3.0.3",
            "markupsafe-3.0.3-cp314-cp314-pyemscripten_2026_0_wasm32.whl",
            "70d3fb95b0946e2b4a2c182b4e10ddff5e498ebe2bb596a0aa179f0844c56c67",
            [],
        ),
    )
}

# JavaScript libraries that pages may load. The first one's name is that of its module in Python.
TOKENIZERS = "huggingface_tokenizers"
TOKENIZERS_VERSION = "0.2.0"
TOKENIZERS_FILE = "tokenizers.min.mjs"
MARKED, MARKED_VERSION, MARKED_FILE = "marked", "18.2.1", "marked.esm.js"
DOMPURIFY, DOMPURIFY_VERSION, DOMPURIFY_FILE = "dompurify", "3.4.18", "purify.es.mjs"
NPM_CDN = "https://cdn.jsdelivr.net/npm/"
TOKENIZERS_CDN = f"{NPM_CDN}@huggingface/tokenizers@{TOKENIZERS_VERSION}/dist/{TOKENIZERS_FILE}"
MARKDOWN_CDN = {
    MARKED: f"{NPM_CDN}marked@{MARKED_VERSION}/lib/{MARKED_FILE}",
    DOMPURIFY: f"{NPM_CDN}dompurify@{DOMPURIFY_VERSION}/dist/{DOMPURIFY_FILE}",
}
LIBRARIES = {"pyodide": CDN, "tokenizers": TOKENIZERS_CDN, "markdown": " ".join(MARKDOWN_CDN.values())}


@contextmanager
def replaced_site(out: Path) -> Iterator[Path]:
    """Make a temporary folder, which takes the place of a site as a whole if the block succeeds.

    Raises:  SiteError if `out` contains anything else
    """
    if out.is_dir() and any(out.iterdir()) and not (out / DESCRIPTION).is_file():
        raise SiteError(f"{out} is neither empty nor a site", hint="choose another folder, or empty it")
    with replaced_folder(out, ENTRY) as stage:
        yield stage


def build_site(
    out: Path,
    *,
    wheel: Path | None,
    pyodide: Path | None,
    tokenizers: Path | None = None,
    markdown: Path | None = None,
    models: Iterable[dict[str, Any]] = (),
    encoders: Iterable[dict[str, Any]] = (),
    packages: Sequence[str] = (),
) -> bool:
    """Write the site to an empty folder, such as that of `replaced_site`.

    With a copy of Pyodide and Node to run it, the standard library, NumPy and tallow are compiled to bytecode.

    Args:
        wheel: any wheel of tallow, from which the files for pages are taken; None for the running tallow.
        pyodide: a copy of Pyodide made by scripts/fetch_pyodide.py; None for its CDN.
        tokenizers: a copy of Hugging Face's tokenizers made by scripts/fetch_npm.py; None for a CDN.
        markdown: likewise, of the libraries that render Markdown.
        models: presets for the llama2c page, as in wasm_examples/llama2c/presets.json.
        encoders: sentence encoders for the bert page, {"name", "bytes", "files": {name in the folder: URL}}.
        packages: of Pyodide's distribution, to be part of the site if `pyodide` has their files; else they are on the
            CDN.

    Returns:  whether the site contains bytecode

    Raises:  SiteError if `pyodide` is not the required release, or there is no such package
    """
    copy_pages(out)
    shutil.rmtree(out / SERVER)
    # Both belong at the root: the front page, and a service worker, whose folder is its scope.
    for name in (ENTRY, "service-worker.js"):
        (out / "web" / name).rename(out / name)
    write_heads(out, LIBRARIES)
    worker = out / "web" / "worker.js"
    worker.write_text(join_modules(worker), encoding="utf-8")

    runtime = out / "runtime"
    runtime.mkdir()
    base = _copy_pyodide(pyodide, runtime, packages) if pyodide else CDN
    shared = _share_module(runtime / base, out) if pyodide else None
    page_wheel = pack_wheel(runtime, wheel)
    bytecode = pyodide is not None and add_bytecode(page_wheel, SITE_PACKAGES, pyodide)
    jinja = _pack_jinja(runtime, pyodide) if pyodide else None
    digest = _sha256(page_wheel)
    (runtime / digest[:8]).mkdir()
    page_wheel = page_wheel.rename(runtime / digest[:8] / page_wheel.name)
    numpy = dict(LOCK_NUMPY, file_name=base + NUMPY_WHEEL)
    if pyodide:
        numpy["sha256"] = _sha256(runtime / base / NUMPY_WHEEL)
    lock = {
        "info": LOCK_INFO,
        "packages": {
            "numpy": numpy,
            "tallow": lock_entry(page_wheel, digest, file_name=f"{digest[:8]}/{page_wheel.name}"),
            **({} if pyodide else LOCK_JINJA),
        },
    }
    _write_json(runtime / "pyodide-lock.json", lock)
    parts = _write_parts(runtime, page_wheel, runtime / base, jinja) if pyodide else None
    snapshot = None
    if bytecode and pyodide:  # without it, Python would look for newer files at every import
        installed = (runtime / base / NUMPY_WHEEL, page_wheel, *([jinja] if jinja else []))
        whole = Runtime(pyodide, runtime / base / STDLIB, STDLIB_PLACE, installed, SITE_PACKAGES)
        snapshot = write_snapshot(whole, out, runtime)
    libraries = _copy_libraries(runtime, tokenizers, markdown)
    fill_place(out / ENTRY, "package", _link(f"runtime/{digest[:8]}/{page_wheel.name}", "The wheel for Pyodide"))
    site = {
        "version": _version(out),
        "pyodide": CDN if pyodide is None else f"runtime/{base}",
        "shared": f"runtime/{base}{shared}" if shared else None,
        "snapshot": snapshot and snapshot | {"url": f"runtime/{snapshot['url']}"},
        "lock": "runtime/pyodide-lock.json",
        "parts": f"runtime/{parts}/" if parts else None,
        "files": _hashes(out, runtime),
        "libraries": libraries,
        "models": list(models),
        "encoders": list(encoders),
    }
    _write_json(out / DESCRIPTION, site)
    return bytecode


def fill_place(front_page: Path, name: str, html: str) -> None:
    """Write `html` in place of the front page's comment that begins with `name` and a colon."""
    before, place, after = front_page.read_text(encoding="utf-8").partition(f"<!-- {name}:")
    if not place:
        raise SiteError(f"{front_page} has no place for the {name}")
    front_page.write_text(before + html + after.partition("-->")[2], encoding="utf-8")


def _link(target: str, text: str) -> str:
    return f'<p class="hint"><a href="{target}">{text}</a></p>'


def _version(site: Path) -> str:
    """Return a hash of the pages. The service worker then knows that its copies are of another version."""
    files = (path for path in sorted(site.rglob("*")) if path.is_file() and "runtime" not in path.parts)
    digests = "".join(f"{path.relative_to(site).as_posix()}:{_sha256(path)}\n" for path in files)
    return hashlib.sha256(digests.encode()).hexdigest()[:16]


def lock_entry(wheel: Path, digest: str, *, file_name: str) -> dict[str, Any]:
    """Return the entry for tallow's wheel in pyodide-lock.json, as the package `pyodide-lock` would write it.

    That package is not used because `tallow demo` may use only tallow's own dependencies, and because its releases for
    Python 3.11 cannot read the lock files of Pyodide 314. In the browser tallow needs only NumPy.
    """
    name, version = wheel.name.split("-")[:2]
    return {
        "name": name,
        "version": version,
        "file_name": file_name,
        "install_dir": "site",
        "sha256": digest,
        "package_type": "package",
        "imports": top_level_packages(wheel),
        "depends": ["numpy"],
        "unvendored_tests": False,
    }


def _copy_pyodide(source: Path, runtime: Path, packages: Sequence[str]) -> str:
    """Copy the files of Pyodide that pages load, with bytecode if possible. Return the folder's name with a slash."""
    try:
        version = json.loads(read_regular(source / "package.json"))["version"]
    except (ValueError, TypeError, KeyError) as error:
        raise SiteError(f"{source / 'package.json'} contains no version", hint="run fetch_pyodide.py") from error
    if version != PYODIDE_VERSION:
        raise SiteError(f"{source} is Pyodide {version}, the pages need {PYODIDE_VERSION}", hint="run fetch_pyodide.py")
    copy = runtime / "pyodide"
    copy.mkdir()
    for name in (*PYODIDE_CORE, NUMPY_WHEEL):
        shutil.copyfile(source / name, copy / name)
    copy_packages(source, copy, cdn=CDN, without=["numpy"], wanted=packages)
    add_bytecode(copy / STDLIB, STDLIB_PLACE, source)
    add_bytecode(copy / NUMPY_WHEEL, SITE_PACKAGES, source)
    folder = f"pyodide-{version}-{_sha256(copy / STDLIB)[:8]}"
    copy.rename(runtime / folder)
    return f"{folder}/"


def _share_module(folder: Path, site: Path) -> str | None:
    """Add a copy of Pyodide's main module with a shared memory, if possible. Return its name."""
    target = folder / "pyodide-shared.asm.wasm"
    return target.name if write_shared_module(folder / MODULE, target, site / "web" / "memory-type.js") else None


def _pack_jinja(runtime: Path, pyodide: Path) -> Path | None:
    """Write Jinja with bytecode to a folder of its own. Return None if Jinja is not installed here."""
    archive = pack_template_engine(runtime)
    if archive is None:
        return None
    add_bytecode(archive, SITE_PACKAGES, pyodide)
    folder = runtime / f"jinja2-{_sha256(archive)[:8]}"
    folder.mkdir()
    return archive.rename(folder / archive.name)


def _write_parts(runtime: Path, wheel: Path, pyodide: Path, jinja: Path | None) -> str:
    """Write the parts of Python, and return the name of their folder."""
    folder = runtime / "python"
    folder.mkdir()
    write_parts(folder, stdlib=pyodide / STDLIB, numpy=pyodide / NUMPY_WHEEL, tallow=wheel, jinja=jinja)
    digests = "".join(_sha256(path) for path in sorted(folder.rglob("*.*")))
    name = f"python-{hashlib.sha256(digests.encode()).hexdigest()[:8]}"
    folder.rename(runtime / name)
    return name


def _hashes(out: Path, runtime: Path) -> dict[str, str]:
    """Return the SHA-256 of each file in a folder of `runtime`: the service worker keeps these for ever."""
    files = (path for path in sorted(runtime.glob("*/**/*")) if path.is_file())
    return {path.relative_to(out).as_posix(): _sha256(path) for path in files}


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _copy_libraries(runtime: Path, tokenizers: Path | None, markdown: Path | None) -> dict[str, str]:
    """Copy the JavaScript libraries of which there are copies, with their licences. Return the URLs of all."""
    urls = {TOKENIZERS: TOKENIZERS_CDN, **MARKDOWN_CDN}
    for source, folder, files in (
        (tokenizers, f"huggingface-tokenizers-{TOKENIZERS_VERSION}", {TOKENIZERS: TOKENIZERS_FILE}),
        (
            markdown,
            f"markdown-{MARKED_VERSION}-{DOMPURIFY_VERSION}",
            {MARKED: MARKED_FILE, DOMPURIFY: DOMPURIFY_FILE},
        ),
    ):
        if source is None:
            continue
        (runtime / folder).mkdir()
        for path in (*(source / file for file in files.values()), *source.glob("LICENSE*")):
            shutil.copyfile(path, runtime / folder / path.name)
        urls |= {name: f"runtime/{folder}/{file}" for name, file in files.items()}
    return urls


def _write_json(path: Path, value: object) -> None:
    path.write_text(json.dumps(value, indent=1, sort_keys=True) + "\n")
