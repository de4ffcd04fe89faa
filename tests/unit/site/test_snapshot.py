"""The parts of a snapshot of Python's memory; tests/browser/test_snapshot.py opens pages that start from one."""

from __future__ import annotations

import hashlib
import importlib.util
import re
import sys
import zipfile
import zlib
from pathlib import Path

import pytest

from tallow.site import snapshot
from tallow.site.pages import copy_pages
from tallow.site.snapshot import Runtime, page_imports, start_imports, write_snapshot

pytestmark = pytest.mark.native


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the pages of this checkout."""
    folder = tmp_path_factory.mktemp("pages")
    copy_pages(folder)
    return folder


def test_imports_are_those_of_the_pages_without_each_other(tmp_path: Path) -> None:
    page = tmp_path / "wasm_examples" / "page"
    page.mkdir(parents=True)
    (tmp_path / "web").mkdir()
    (tmp_path / "web" / "bridge.py").write_text("from __future__ import annotations\nimport json\n")
    (page / "app.py").write_text(
        "import helper\nimport js\nfrom math import pi as half\n\ndef late():\n    tl.ones(2)\n"
    )
    (page / "helper.py").write_text("import json, math\nfrom app import late\n")
    expected = ["from math import pi as half", "import json", "import json, math", "import numpy.random", "tallow.ones"]
    assert page_imports(tmp_path) == expected


def test_imports_of_the_pages_in_this_checkout_can_be_run(pages: Path) -> None:
    statements = page_imports(pages)
    assert "import tallow" in statements
    modules = {re.split(r"[ .]", statement)[1] for statement in statements if not statement.startswith("tallow.")}
    assert modules <= {*sys.stdlib_module_names, "numpy", "pyodide", "tallow"}  # others are not in a snapshot
    exec("\n".join(line for line in statements if "pyodide" not in line), {})


def test_modules_of_a_first_answer_can_be_imported() -> None:
    statements = start_imports()
    assert "import tallow.core.meta" in statements  # of the story page, when it loads the model
    names = [statement.removeprefix("import ") for statement in statements]
    assert [name for name in names if importlib.util.find_spec(name) is None] == []


def test_block_hash_is_the_hash_of_the_blocks_hashes() -> None:
    """As sha256sum gives it for files of 512 KiB, and for their digests one after the other."""
    data = bytes(range(256)) * 2048 + b"tail"
    digests = hashlib.sha256(data[: 1 << 19]).digest() + hashlib.sha256(b"tail").digest()
    assert snapshot.block_hash(data) == hashlib.sha256(digests).hexdigest()


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_entry_says_where_the_data_is(tmp_path: Path, method: int) -> None:
    path = tmp_path / "archive.zip"
    with zipfile.ZipFile(path, "w") as archive:
        info = zipfile.ZipInfo("first.txt")
        info.extra = b"\xfe\xca\x02\x00xy"  # only the local header's length counts
        archive.writestr(info, b"1")
        archive.writestr("folder/second.txt", b"text " * 100, method)
    with zipfile.ZipFile(path) as archive:
        position, packed, size, checksum, is_deflated = snapshot._entry(archive, archive.getinfo("folder/second.txt"))
    data = path.read_bytes()[position : position + packed]
    text = zlib.decompress(data, -15) if is_deflated else data
    assert (text, size, checksum) == (b"text " * 100, 500, zlib.crc32(text))


@pytest.mark.parametrize("program", [None, "#!/bin/sh\nexit 1\n"], ids=["no Node", "Node fails"])
def test_without_node_nothing_is_written(
    tmp_path: Path, pages: Path, monkeypatch: pytest.MonkeyPatch, program: str | None
) -> None:
    out = tmp_path / "runtime"
    out.mkdir()
    monkeypatch.setenv("PATH", str(tmp_path))
    if program:
        (tmp_path / "node").write_text(program)
        (tmp_path / "node").chmod(0o755)
    for name in ("package.json", "stdlib.zip"):
        (tmp_path / name).write_bytes(b"")
    runtime = Runtime(tmp_path, tmp_path / "stdlib.zip", "/lib/stdlib.zip", (), "/lib/site-packages")
    assert write_snapshot(runtime, pages, out) is None
    assert not list(out.iterdir())
