"""Give sites a snapshot of Python's memory, from which their pages start (web/boot/start.js).

Pyodide writes it, in Node: Python with its standard library, NumPy and tallow, after the imports of all pages. It works
with one version of each only. The results are stored in tallow's cache.
"""

from __future__ import annotations

import ast
import gzip
import hashlib
import json
import os
import re
import shutil
import struct
import tempfile
import zipfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from tallow.site.cache import cache_folder, cache_key
from tallow.site.node import RELAXED_SIMD, run_in_node
from tallow.site.parts import START_MODULES

FORMAT = 3
SCRIPT = Path(__file__).with_name("snapshot_writer.mjs")
STATE, REWRITER = "snapshot_state.py", "memory-type.js"  # in web/
TIMEOUT_S = 300  # it takes a minute on a slow machine
KEPT = 4  # snapshots in tallow's cache, of 20 MB each
DESCRIPTION, MEMORY, LINKING = "snapshot.json.gz", "memory.bin.gz", "linking.json"
# Modules that are not Python's, NumPy's or tallow's, or that are another one on each page.
NOT_IMPORTED = {"__future__", "__main__", "app", "js", "pyodide_js"}
LAZY = ("tallow.core.", "tallow.io.", "tallow.nn.")  # packages whose modules are also imported by functions
# Of Node 20, and of 22 and 24. Pyodide keeps in its memory whether WebAssembly can wait for JavaScript (JSPI). Where a
# browser cannot, `can_run_sync` says so all the same.
STACK_SWITCHING = ("--experimental-wasm-stack-switching", "--experimental-wasm-jspi")
KERNELS = ".wasm"  # needed soon, if not in the memory: so these get files of their own
# Of models that users choose: for one module that is not in the memory, a page fetches tallow's whole wheel.
CHOSEN = "from tallow.models import Falcon, GPT2, Gemma3, Mistral, Phi3, Qwen3, gguf_models"
TALLOW_NAME = r"\b(?:tl|tallow)\.([a-z]\w*)\("  # a function that a page calls
BLOCK_BYTES = 1 << 19  # as in web/boot/sha256.js
NAME_LENGTHS = 26  # where a zip file's local header has the lengths of name and extra field, which end it

Tree = dict[str, Any]


class Runtime(NamedTuple):
    """The parts of a snapshot.

    Attributes:
        pyodide: a copy of Pyodide made by scripts/fetch_pyodide.py.
        stdlib: Python's own library with bytecode, in the site.
        stdlib_place: where Python finds it.
        wheels: the wheels to install, with bytecode, in the site.
        site_packages: where they are installed.
    """

    pyodide: Path
    stdlib: Path
    stdlib_place: str
    wheels: tuple[Path, ...]
    site_packages: str


def write_snapshot(runtime: Runtime, pages: Path, out: Path) -> dict[str, str] | None:
    """Write a snapshot to a new folder in the folder `out`. Without Node 20 or later only the cache has one.

    Args:
        pages: the folder with web/ and wasm_examples/.

    Returns:  its place in `out` and its SHA-256; None if it could not be made
    """
    output = _writer_output(runtime, pages)
    if output is None:
        return None
    with tempfile.TemporaryDirectory(dir=out) as scratch:
        folder = shutil.copytree(output, Path(scratch, "snapshot"))
        linking = json.loads((folder / LINKING).read_text())
        (folder / LINKING).unlink()
        description = _describe(runtime, linking, folder)
        packed = gzip.compress(json.dumps(description, separators=(",", ":")).encode(), mtime=0)
        (folder / DESCRIPTION).write_bytes(packed)
        digest = hashlib.sha256(packed).hexdigest()
        name = f"snapshot-{digest[:8]}"
        folder.rename(out / name)
    return {"url": f"{name}/{DESCRIPTION}", "sha256": digest}


def _writer_output(runtime: Runtime, pages: Path) -> Path | None:
    """Return the folder in tallow's cache with what the script writes for these files, or None if it fails."""
    state, rewriter = pages / "web" / STATE, pages / "web" / REWRITER
    imports = "\n".join((*page_imports(pages), *start_imports(), CHOSEN))
    files = (SCRIPT, state, rewriter, runtime.pyodide / "package.json", runtime.stdlib, *runtime.wheels)
    cache = cache_folder() / "snapshots"
    cache.mkdir(parents=True, exist_ok=True)
    kept = cache / cache_key(imports.encode(), *(path.read_bytes() for path in files))
    if kept.is_dir():
        os.utime(kept)
        return kept
    with tempfile.TemporaryDirectory(dir=cache, prefix=".") as scratch:
        folder = Path(scratch, "snapshot")
        folder.mkdir()
        config = {
            "pyodide": str(runtime.pyodide),
            "stdlib": str(runtime.stdlib),
            "wheels": [str(wheel) for wheel in runtime.wheels],
            "state": str(state),
            "imports": imports,
            "rewriter": rewriter.resolve().as_uri(),
            "out": str(folder),
        }
        config_file = Path(scratch, "config.json")
        config_file.write_text(json.dumps(config))
        options = (RELAXED_SIMD, *STACK_SWITCHING)
        if not run_in_node(SCRIPT, str(config_file), timeout_s=TIMEOUT_S, options=options):
            return None
        with suppress(OSError):  # another process was first
            folder.rename(kept)
    by_use = sorted((path for path in cache.iterdir() if path.name[0] != "."), key=lambda path: path.stat().st_mtime)
    for old in by_use[:-KEPT]:
        shutil.rmtree(old, ignore_errors=True)
    return kept


def page_imports(pages: Path) -> list[str]:
    """Return the import statements at the top of the pages' Python files, without those of each other.

    Files in a page's folders are imported late, if at all: their imports may need packages that sites do not have.

    With them comes each name of tallow's that a page uses: many are imported at their first use.
    """
    files = [*sorted((pages / "wasm_examples").glob("*/*.py")), pages / "web" / "bridge.py"]
    own = NOT_IMPORTED | {file.stem for file in files}
    statements = {"import numpy.random"}  # NumPy imports it at the first random number
    for file in files:
        source = file.read_text(encoding="utf-8")
        for node in ast.parse(source).body:
            if isinstance(node, ast.Import | ast.ImportFrom) and own.isdisjoint(_modules(node)):
                statements.add(ast.unparse(node))
        statements |= {f"tallow.{name}" for name in re.findall(TALLOW_NAME, source)}
    return sorted(statements)


def start_imports() -> list[str]:
    """Return the import statements of tallow's modules that functions import until the first answer of a page."""
    names = START_MODULES.read_text(encoding="utf-8").split()
    return [f"import {name}" for name in names if name.startswith(LAZY)]


def _modules(node: ast.Import | ast.ImportFrom) -> set[str]:
    return {str(node.module)} if isinstance(node, ast.ImportFrom) else {alias.name for alias in node.names}


def _describe(runtime: Runtime, linking: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Return what web/boot/snapshot.js reads: its type Description. Write the files of their own to `folder`."""
    packed = (folder / MEMORY).read_bytes()
    tree: Tree = {}
    _put(tree, runtime.stdlib_place, _file(f"../{_in_site(runtime.stdlib)}", runtime.stdlib))
    own = set(linking["inline"])  # files that do not come from their archive
    for library in linking["libraries"]:
        _put(tree, library["path"], _file(library["file"], folder / library["file"]))
        own.add(library["path"])
    for number, wheel in enumerate(runtime.wheels):
        with zipfile.ZipFile(wheel) as archive:
            for info in archive.infolist():
                path = f"{runtime.site_packages}/{info.filename}"
                if path.endswith(KERNELS):
                    copy = folder / Path(path).name
                    copy.write_bytes(archive.read(info))
                    _put(tree, path, _file(copy.name, copy))
                elif path not in own:
                    _put(tree, path, [number, *_entry(archive, info)])
    return {
        **linking,
        "format": FORMAT,
        "packages": [wheel.name.split("-")[0] for wheel in runtime.wheels],
        "memory": {
            **linking["memory"],
            "url": MEMORY,
            "sha256": hashlib.sha256(packed).hexdigest(),
            "unpackedHash": block_hash(gzip.decompress(packed)),
        },
        "layout": {"archives": [_file(f"../{_in_site(wheel)}", wheel) for wheel in runtime.wheels], "tree": tree},
    }


def block_hash(data: bytes) -> str:
    """Return the SHA-256 of the SHA-256 of each block, in hexadecimal, as `blockHash` of web/boot/sha256.js does."""
    blocks = (data[start : start + BLOCK_BYTES] for start in range(0, len(data), BLOCK_BYTES))
    return hashlib.sha256(b"".join(hashlib.sha256(block).digest() for block in blocks)).hexdigest()


def _put(tree: Tree, path: str, file: list[Any]) -> None:
    """Add a file to nested dictionaries, one for each folder."""
    *folders, name = path.strip("/").split("/")
    for folder in folders:
        tree = tree.setdefault(folder, {})
    tree[name] = file


def _in_site(path: Path) -> str:
    return f"{path.parent.name}/{path.name}"


def _file(url: str, path: Path) -> list[Any]:
    return [url, path.stat().st_size]


def _entry(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> list[Any]:
    """Return the position of a file's data, both sizes, its CRC-32, and whether it is deflated."""
    assert archive.fp
    archive.fp.seek(info.header_offset + NAME_LENGTHS)
    name, extra = struct.unpack("<HH", archive.fp.read(4))
    start = info.header_offset + NAME_LENGTHS + 4 + name + extra
    return [start, info.compress_size, info.file_size, info.CRC, info.compress_type == zipfile.ZIP_DEFLATED]
