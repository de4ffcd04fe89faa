"""The wheel that web pages install: tallow's Python files and WebAssembly kernels, no pages, no native libraries.

There is one way to make it, from one of two sources: the tallow that runs, installed or in a checkout, which is what
`tallow demo` has, or a wheel of tallow that was built from a checkout.
"""

from __future__ import annotations

import base64
import hashlib
import importlib.metadata
import importlib.util
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath

from tallow.errors import TallowError
from tallow.io.regular import regular

PACKAGES = ("tallow", "tallow_cuda")  # tallow.cuda imports tallow_cuda to list GPUs, in a browser too
PAGES = "_site.tar.xz"  # in the package: web/ and wasm_examples/, see hatch_build.py
NATIVE_SUFFIXES = (".so", ".dylib", ".dll")
WHEEL = b"Wheel-Version: 1.0\nGenerator: tallow\nRoot-Is-Purelib: true\nTag: py3-none-any\n"


class SiteError(TallowError, RuntimeError):
    """The site cannot be built from the files at hand."""


def pack_wheel(folder: Path, source: Path | None = None) -> Path:
    """Write the py3-none-any wheel for web pages to `folder` and return its path. The output is reproducible.

    Args:  source: any wheel of tallow; None means the running tallow

    Raises:  SiteError if the source lacks files that a page needs
    """
    found = _running() if source is None else _unpacked(source)
    # In order, so that both sources give the same wheel: what sites make of it is cached by its bytes.
    files = {name: data for name, data in sorted(found) if _is_for_pages(name)}
    if not any(name.endswith(".wasm") for name in files):
        raise SiteError(f"{source or 'tallow'} has no WASM kernels", hint="install tallow from a wheel: pip install .")
    (metadata,) = (name for name in files if name.endswith("METADATA"))
    info = str(PurePosixPath(metadata).parent)
    files[f"{info}/WHEEL"] = WHEEL
    files[f"{info}/RECORD"] = _record(files) + f"{info}/RECORD,,\n".encode()
    wheel = folder / f"{info.removesuffix('.dist-info')}-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for name, data in files.items():
            archive.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED)  # ZipInfo has a fixed date
    return wheel


def _is_for_pages(name: str) -> bool:
    top, *rest = PurePosixPath(name).parts
    if top.endswith(".dist-info"):
        return rest[0] in ("METADATA", "licenses")
    return top in PACKAGES and {PAGES, "__pycache__"}.isdisjoint(rest) and not name.endswith(NATIVE_SUFFIXES)


def _running() -> Iterator[tuple[str, bytes]]:
    """Yield the files of the running packages, installed or in a checkout, and their metadata."""
    for package in PACKAGES:
        spec = importlib.util.find_spec(package)
        if spec is None or spec.origin is None:
            raise SiteError(f"the package {package} is not installed", hint="install from a wheel: pip install .")
        folder = Path(spec.origin).parent
        sources = folder / "kernels" / "src"  # in a checkout; wheels contain the compiled kernels
        for path in sorted(folder.rglob("*")):
            if path.is_file() and not path.is_relative_to(sources):
                yield f"{package}/{path.relative_to(folder).as_posix()}", path.read_bytes()
    try:
        distribution = importlib.metadata.distribution("tallow")
    except importlib.metadata.PackageNotFoundError as error:
        raise SiteError("tallow is not installed", hint="pip install .") from error
    licenses = distribution.metadata.get_all("License-File") or []
    for name in ("METADATA", *(f"licenses/{license}" for license in sorted(licenses))):
        yield f"tallow-{distribution.version}.dist-info/{name}", (distribution.read_text(name) or "").encode()


def _unpacked(wheel: Path) -> Iterator[tuple[str, bytes]]:
    """Yield the files of a wheel."""
    try:
        with open(wheel, "rb", opener=regular) as file, zipfile.ZipFile(file) as archive:
            yield from ((name, archive.read(name)) for name in sorted(archive.namelist()) if not name.endswith("/"))
    except zipfile.BadZipFile as error:
        raise SiteError(f"{wheel} is not a wheel") from error


def _record(files: Mapping[str, bytes]) -> bytes:
    lines = []
    for name, data in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        lines.append(f"{name},sha256={digest},{len(data)}\n")
    return "".join(lines).encode()


def top_level_packages(wheel: Path) -> list[str]:
    """Return the names of the packages in a wheel, sorted."""
    with zipfile.ZipFile(wheel) as archive:
        return sorted({name.split("/")[0] for name in archive.namelist() if name.endswith(".py") and "/" in name})
