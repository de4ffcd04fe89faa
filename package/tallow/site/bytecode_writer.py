"""Compile archives to the bytecode of the running Python. bytecode.py runs this file in Pyodide, in Node.

Uses only the standard library. File format: PEP 552, "unchecked hash-based pycs".
"""

from __future__ import annotations

import importlib.util
import io
import marshal
import zipfile
from pathlib import Path

# Followed by the hash of the source, which Python does not check.
HEADER = importlib.util.MAGIC_NUMBER + (0b01).to_bytes(4, "little")


def compile_archive(source: bytes, prefix: str) -> bytes:
    """Return a copy of the zip file `source` with bytecode for each Python file.

    Code objects contain the path of their file, for tracebacks. `prefix` is the folder where the files are installed
    or, if it ends in ".zip", the archive that Python reads them from (zipimport). An archive for zipimport gets
    bytecode instead of Python files; an archive to install gets both.

    The output is reproducible.
    """
    installed = not prefix.endswith(".zip")
    target = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(source)) as archive, zipfile.ZipFile(target, "w") as copy:
        for info in archive.infolist():
            data = archive.read(info)
            entries = {info.filename: data}
            if info.filename.endswith(".py"):
                code = compile(data, f"{prefix}/{info.filename}", "exec", dont_inherit=True)
                bytecode = HEADER + importlib.util.source_hash(data) + marshal.dumps(code)
                if installed:
                    entries[importlib.util.cache_from_source(info.filename)] = bytecode
                else:
                    entries = {f"{info.filename}c": bytecode}
            for name, content in entries.items():
                copy.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED)  # ZipInfo has a fixed date
    return target.getvalue()


def compile_file(source: str, target: str, prefix: str) -> None:
    """Apply `compile_archive` to the file `source` and write the result to `target`."""
    Path(target).write_bytes(compile_archive(Path(source).read_bytes(), prefix))
