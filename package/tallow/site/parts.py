"""Python for pages, in parts: what every page imports until its first answer, and the rest, which loads when imported.

start/stdlib.zip     modules of the standard library; Python imports them from this archive
start/packages.tgz   NumPy and tallow, without the modules that pages do not need to start
models.tgz           the other modules of tallow.models, one of which a page needs for a model that the user chooses
stdlib.tgz, ...      the other modules: of the standard library, NumPy, tallow; each built-in model; Jinja

start_modules.txt names the modules of the first two; tests/browser/test_start_modules.py compares it with what pages
import. One archive for all packages is unpacked in a tenth of the time that Pyodide needs for wheels, and compresses
better. Where there is bytecode it replaces the source; tallow's own sources are in its part, for tracebacks.
"""

from __future__ import annotations

import gzip
import io
import json
import tarfile
import zipfile
from collections import defaultdict
from collections.abc import Collection, Mapping
from pathlib import Path, PurePosixPath

START_MODULES = Path(__file__).with_name("start_modules.txt")
SITE_PACKAGES, STDLIB_FOLDER = "lib/python3.14/site-packages", "lib/python3.14"
START_ZIP, START_PACKAGES = "start/stdlib.zip", "start/packages.tgz"
INDEX = "later.json"  # in site-packages: {"module": "the part that contains it"}
MODELS = "tallow/models/"
WEIGHTS = "model.safetensors"  # of a built-in model, whose folder is a part
CODE = (".py", ".pyc", ".so")
# For compilers and type checkers, and lists of installed files.
UNUSED = (".a", ".c", ".h", ".ini", ".pc", ".pxd", ".pyi", ".pyx", ".template", ".build", ".cfg", ".in", "/RECORD")

Files = Mapping[str, bytes]


def write_parts(folder: Path, *, stdlib: Path, numpy: Path, tallow: Path, jinja: Path | None = None) -> None:
    """Write the parts of the archives to `folder`. The output is reproducible.

    Args:
        stdlib: Pyodide's standard library, with or without bytecode; likewise the wheels `numpy` and `tallow`.
        jinja: likewise the archive of `pack_template_engine`.
    """
    start = frozenset(START_MODULES.read_text(encoding="utf-8").split())
    at_start: dict[str, bytes] = {}
    later: dict[str, dict[str, bytes]] = defaultdict(dict)
    index: dict[str, str] = {}
    for name, archive, root in (
        ("stdlib", stdlib, STDLIB_FOLDER),
        ("numpy", numpy, SITE_PACKAGES),
        ("tallow", tallow, SITE_PACKAGES),
        ("jinja2", jinja, SITE_PACKAGES),
    ):
        if archive is None:
            continue
        files = _contents(archive)
        models = {path.rpartition("/")[0] for path in files if path.endswith(WEIGHTS)}
        zipped: dict[str, bytes] = {}
        for path, data in _compiled(files).items():
            model = next((model for model in models if path.startswith(f"{model}/")), None)
            is_metadata = path.endswith(".dist-info/METADATA")
            if model is None and (is_metadata or _owner(path, files) in start):
                (zipped if name == "stdlib" else at_start)[f"{root}/{path}"] = data
                if name == "tallow" and path.endswith(".pyc"):
                    source = path.removesuffix("c")
                    later[name][f"{root}/{source}"] = files[source]
                continue
            part = PurePosixPath(model).name if model else "models" if path.startswith(MODELS) else name
            later[part][f"{root}/{path}"] = data
            if path.endswith(CODE):
                index[_first_absent(_module(path), model, start)] = part
        if zipped:
            _write_zip(folder / START_ZIP, {path.removeprefix(f"{root}/"): data for path, data in zipped.items()})
    at_start[f"{SITE_PACKAGES}/{INDEX}"] = json.dumps(index, sort_keys=True).encode()
    _write_tar(folder / START_PACKAGES, at_start)
    for part, content in later.items():
        _write_tar(folder / f"{part}.tgz", content)


def _contents(archive: Path) -> dict[str, bytes]:
    """Return the files that Python uses, by name."""
    with zipfile.ZipFile(archive) as opened:
        names = [name for name in opened.namelist() if not name.endswith(("/", *UNUSED))]
        return {name: opened.read(name) for name in sorted(names)}


def _compiled(files: Files) -> dict[str, bytes]:
    """Replace Python files by their bytecode, where there is some, under the names of modules without sources."""
    compiled = {}
    for path, data in files.items():
        folder, _, name = path.rpartition("/__pycache__/")
        compiled[f"{folder}/{name.partition('.')[0]}.pyc" if folder else path] = data
    return {path: data for path, data in compiled.items() if not (path.endswith(".py") and f"{path}c" in compiled)}


def _module(path: str) -> str:
    """Return the name of the module in a file."""
    folder, _, name = path.rpartition("/")
    stem = name.partition(".")[0]
    return ".".join([part for part in (*folder.split("/"), stem) if part and part != "__init__"])


def _owner(path: str, files: Files) -> str:
    """Return the module that needs a file: its own, or the package around it."""
    if path.endswith(CODE):
        return _module(path)
    package = next((str(folder) for folder in PurePosixPath(path).parents if f"{folder}/__init__.py" in files), "")
    return package.replace("/", ".")


def _first_absent(module: str, model: str | None, start: Collection[str]) -> str:
    """Return the first of the packages around a module, or the module, that is not there at the start."""
    if model is not None:
        return model.replace("/", ".")
    names = module.split(".")
    return next(name for i in range(len(names)) if (name := ".".join(names[: i + 1])) not in start)


def _write_zip(path: Path, files: Files) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in files.items():
            archive.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED)  # ZipInfo has a fixed date


def _write_tar(path: Path, files: Files) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    written = io.BytesIO()
    with tarfile.open(fileobj=written, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name in sorted(files, key=lambda name: (PurePosixPath(name).suffix, name)):  # alike files compress together
            info = tarfile.TarInfo(name)
            info.size = len(files[name])
            archive.addfile(info, io.BytesIO(files[name]))
    path.write_bytes(gzip.compress(written.getvalue(), mtime=0))
