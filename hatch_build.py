"""Build hook: compile the kernels into the wheel, pack the pages, and set the wheel's platform tag.

`TALLOW_WHEEL=pure` makes a py3-none-any wheel with the WebAssembly kernels. `TALLOW_WHEEL=platform`, the default, adds
the native ones for this machine. An editable install compiles into the source tree instead.

The pages of `tallow demo` are one archive: a browser that installs the wheel writes its files one by one.
"""

from __future__ import annotations

import os
import platform
import sys
import sysconfig
import tarfile
from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from zipfile import ZIP_DEFLATED, ZipFile

from deflate import deflate_compress
from hatchling.builders.hooks.plugin.interface import BuildHookInterface

KINDS = {"pure": ("wasm",), "platform": ("wasm", "native")}
PAGES = "tallow/_site.tar.xz"
PAGE_FOLDERS = ("web", "wasm_examples")
LEVEL = 12  # the highest of libdeflate


class KernelBuildHook(BuildHookInterface[Any]):
    """Hook that hatchling calls for each wheel; if the compiler fails, so does the build."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile the kernels, and add them and the tag to `build_data`."""
        kind = os.environ.get("TALLOW_WHEEL", "platform")
        if kind not in KINDS:
            raise ValueError(f"TALLOW_WHEEL={kind!r}; it is one of: {', '.join(KINDS)}")
        sys.path.insert(0, self.root)  # build frontends do not add the project to sys.path
        import build_kernels

        if version == "editable":
            build_kernels.build(build_kernels.DEFAULT_OUT)
            return
        self._scratch = TemporaryDirectory()  # removed with the hook, also when a later step fails
        libraries = build_kernels.build(Path(self._scratch.name), KINDS[kind])
        for path in libraries:
            build_data["force_include"][str(path)] = f"tallow/kernels/lib/{path.name}"
        pages = Path(self._scratch.name, "pages.tar.xz")
        pack(pages, Path(self.root), PAGE_FOLDERS)
        build_data["force_include"][str(pages)] = PAGES
        if kind == "platform" and build_kernels.variants("native"):
            build_data["pure_python"] = False
            build_data["tag"] = f"py3-none-{platform_tag(build_kernels.MACOS)}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Compress the wheel again, by libdeflate: in the format of zlib, 3% smaller than zlib can."""
        if version == "editable":
            return
        with ZipFile(artifact_path) as wheel:
            files = [(info, wheel.read(info)) for info in wheel.infolist()]
        with ZipFile(artifact_path, "w") as wheel:
            for info, content in files:
                with wheel.open(info, "w") as file:
                    if info.compress_type == ZIP_DEFLATED:
                        file._compressor = _Deflater()  # type: ignore[attr-defined]  # zipfile has no public way
                    file.write(content)


class _Deflater:
    """What `zipfile` needs of a `zlib.compressobj`."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def compress(self, data: bytes) -> bytes:
        self._parts.append(data)
        return b""

    def flush(self) -> bytes:
        return bytes(deflate_compress(b"".join(self._parts), LEVEL))


def pack(out: Path, root: Path, folders: Iterable[str]) -> None:
    """Write folders of `root` to an archive, the same one each time. Files of one kind stand together.

    LZMA takes a tenth less than the wheel's own compression, whose window is shorter than most pages.
    """
    paths = [path for folder in folders for path in (root / folder).rglob("*")]
    with tarfile.open(out, "w:xz", preset=9) as archive:
        for path in sorted(paths, key=lambda path: (path.suffix, path.name, path)):
            if path.is_file() and "__pycache__" not in path.parts:
                entry = tarfile.TarInfo(path.relative_to(root).as_posix())  # with a fixed date
                entry.size = path.stat().st_size
                with path.open("rb") as content:
                    archive.addfile(entry, content)


def platform_tag(macos: str) -> str:
    """Return the platform tag of this machine's native kernels.

    On Linux they run on any distribution: the libraries are freestanding, so the version of glibc, or musl, does not
    matter. On macOS the tag names this machine's processor and the version `macos`, even if Python itself is built for
    both processors ("universal2").
    """
    name = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    system, _, machine = name.partition("_")
    if system == "linux":
        return f"manylinux_2_17_{machine}.musllinux_1_1_{machine}"
    if system == "macosx":
        return f"macosx_{macos.replace('.', '_')}_{platform.machine()}"
    return name
