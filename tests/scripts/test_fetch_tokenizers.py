"""scripts/fetch_tokenizers.py caches only the requested package, whichever server sends it."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path
from urllib.error import URLError

import fetch_tokenizers
import pytest
from fetch_pyodide import FetchError


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


def test_copy_is_made_once(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    requests: list[str] = []
    copy = cache / f"huggingface-tokenizers-{fetch_tokenizers.VERSION}"
    copy.mkdir()
    monkeypatch.setattr(fetch_tokenizers, "download", lambda url: requests.append(url))
    assert fetch_tokenizers.fetch() == copy
    assert not requests


def test_another_package_is_refused(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetch_tokenizers, "download", lambda url: package({"LICENSE": b"none"}))
    with pytest.raises(FetchError, match="sha512"):
        fetch_tokenizers.fetch()
    assert not list(cache.iterdir())


def test_cdn_is_used_if_the_registry_is_unreachable(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    requests: list[str] = []

    def download(url: str) -> bytes:
        requests.append(url)
        if url == fetch_tokenizers.REGISTRY:
            raise URLError("no route")
        return b"export {};"

    monkeypatch.setattr(fetch_tokenizers, "download", download)
    with pytest.raises(FetchError, match=r"tokenizers\.min\.mjs: sha256 .* expected 258e4633"):
        fetch_tokenizers.fetch()
    assert requests[1:] == [fetch_tokenizers.CDN + name for name in fetch_tokenizers.FILES]
    assert not list(cache.iterdir())


def test_no_network_is_one_error(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def unreachable(url: str) -> bytes:
        raise URLError(f"no route to {url}")

    monkeypatch.setattr(fetch_tokenizers, "download", unreachable)
    with pytest.raises(FetchError, match=r"neither .*registry\.npmjs\.org.* nor .*jsdelivr"):
        fetch_tokenizers.fetch()
