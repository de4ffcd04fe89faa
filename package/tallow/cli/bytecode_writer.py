"""Archives with the bytecode of the Python that runs this file, which is Pyodide: bytecode.py hands it to Node.

It needs the standard library alone. Format of the files: PEP 552, "unchecked hash-based pycs".
"""

from __future__ import annotations

import importlib.util
import io
import marshal
import zipfile
from pathlib import Path

# What follows is the hash of the source, which Python does not look at.
HEADER = importlib.util.MAGIC_NUMBER + (0b01).to_bytes(4, "little")


def compile_archive(source: bytes, prefix: str) -> bytes:
    """A copy of the zip file `source` with bytecode for each Python file in it.

    The address of a file is part of its code, for tracebacks: `prefix` is the folder that the files are installed in,
    or, where it ends in ".zip", the archive that Python reads them from (zipimport). An archive that is read has
    bytecode instead of Python files, one that is installed has both.

    The same bytes give the same bytes.
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
    """`compile_archive` from one file to another."""
    Path(target).write_bytes(compile_archive(Path(source).read_bytes(), prefix))
