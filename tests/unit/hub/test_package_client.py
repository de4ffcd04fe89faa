"""The package huggingface_hub, with its requests of files answered as in a browser."""

from __future__ import annotations

import hashlib
import importlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tallow.hub import in_browser
from tallow.hub.in_browser import Answer

COMMIT = "c" * 40
CONTENT = bytes(range(100))
pytestmark = pytest.mark.native


class Pages:
    """Answers as the Hub does, to requests from Python in a browser: `who/model`, with a file of each kind."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, range | None]] = []
        self.answers: dict[str, Answer] = {}  # replaces what is answered to a path
        self.description: Any = {
            "sha": COMMIT,
            "siblings": [
                {"rfilename": "config.json", "size": 2, "blobId": "5" * 40},
                {"rfilename": "a b.txt", "size": 0, "blobId": "6" * 40},
                {
                    "rfilename": "model.safetensors",
                    "size": len(CONTENT),
                    "blobId": "7" * 40,
                    "lfs": {"sha256": hashlib.sha256(CONTENT).hexdigest(), "size": len(CONTENT)},
                },
            ],
        }

    def __call__(self, url: str, part: range | None, token: str | None) -> Answer:
        path = url.removeprefix("https://huggingface.co/")
        self.asked.append((path, part))
        if path in self.answers:
            return self.answers[path]
        if path in (f"api/models/who/model/revision/{revision}?blobs=true" for revision in ("main", COMMIT)):
            return Answer(200, json.dumps(self.description).encode())
        content = {"config.json": b"{}", "model.safetensors": CONTENT}.get(path.rpartition("/")[2])
        if content is None or not path.startswith(f"who/model/resolve/{COMMIT}/"):
            return Answer(401, b"", "RepoNotFound")
        assert part is not None
        return Answer(206, content[part.start : part.stop])


@pytest.fixture
def pages(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Pages]:
    hub = pytest.importorskip("huggingface_hub")
    http = importlib.import_module("huggingface_hub.utils._http")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr(in_browser, "PAUSES_S", ())
    monkeypatch.setattr("time.sleep", lambda seconds: None)  # of the package, 23 s before it gives up
    monkeypatch.setattr(in_browser, "PART", 40)
    monkeypatch.delenv("HF_ENDPOINT", raising=False)
    stub = Pages()
    monkeypatch.setattr(in_browser, "request", stub)
    importlib.import_module("tallow.hub.package_client").connect()
    yield stub
    hub.set_client_factory(http.default_client_factory)


def download(*arguments: str, **options: Any) -> Path:
    return Path(importlib.import_module("huggingface_hub").hf_hub_download(*arguments, **options))


def error(name: str) -> type[Exception]:
    found: type[Exception] = getattr(importlib.import_module("huggingface_hub.errors"), name)
    return found


def test_a_large_file_comes_in_parts_of_one_commit(pages: Pages) -> None:
    path = download("who/model", "model.safetensors")
    assert path.read_bytes() == CONTENT
    assert path.parent.name == COMMIT
    address = f"who/model/resolve/{COMMIT}/model.safetensors"
    parts = [range(40), range(40, 80), range(80, 100)]
    assert pages.asked == [("api/models/who/model/revision/main?blobs=true", None), *((address, p) for p in parts)]
    assert download("who/model", "model.safetensors") == path
    assert len(pages.asked) == 4


def test_small_and_empty_files_and_revisions(pages: Pages) -> None:
    assert download("who/model", "config.json", revision=COMMIT).read_text() == "{}"
    assert download("who/model", "a b.txt").read_bytes() == b""


@pytest.mark.parametrize(
    ("file", "answers", "raised"),
    [
        ("nosuch.json", {}, "EntryNotFoundError"),
        (
            "config.json",
            {"api/models/who/model/revision/main?blobs=true": Answer(401, b"", "RepoNotFound")},
            "RepositoryNotFoundError",
        ),
        (
            "config.json",
            {"api/models/who/model/revision/main?blobs=true": Answer(404, b"", "RevisionNotFound")},
            "RevisionNotFoundError",
        ),
        ("config.json", {"api/models/who/model/revision/main?blobs=true": Answer(0, b"")}, "LocalEntryNotFoundError"),
        (
            "model.safetensors",
            {f"who/model/resolve/{COMMIT}/model.safetensors": Answer(403, b"", "GatedRepo")},
            "GatedRepoError",
        ),
    ],
)
def test_refusals_are_those_of_the_package(pages: Pages, file: str, answers: dict[str, Answer], raised: str) -> None:
    pages.answers = answers
    with pytest.raises(error(raised)):
        download("who/model", file)


@pytest.mark.parametrize("description", [{"sha": COMMIT}, {"siblings": []}, [], {"sha": COMMIT, "siblings": [1]}])
def test_another_description_is_refused(pages: Pages, description: Any) -> None:
    pages.description = description
    with pytest.raises(importlib.import_module("httpx2").ReadError, match="did not describe a repository"):
        download("who/model", "config.json")


def test_a_file_that_stops_is_no_file(pages: Pages, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = pages.__call__
    stops = lambda url, part, token: whole(url, part, token) if part is None or part.start < 40 else Answer(0, b"")  # noqa: E731
    monkeypatch.setattr(in_browser, "request", stops)
    with pytest.raises(importlib.import_module("httpx2").ReadError, match="stopped at byte 40 of 100"):
        download("who/model", "model.safetensors")


def test_other_requests_are_sent_as_before(pages: Pages, monkeypatch: pytest.MonkeyPatch) -> None:
    httpx2 = importlib.import_module("httpx2")
    sent: list[str] = []

    def send(transport: Any, request: Any) -> Any:
        sent.append(str(request.url))
        return httpx2.Response(200, content=json.dumps([{"id": "who/model"}]).encode(), request=request)

    monkeypatch.setattr(httpx2.HTTPTransport, "handle_request", send)
    found = next(iter(importlib.import_module("huggingface_hub").HfApi().list_models(author="who")))
    assert found.id == "who/model"
    assert [url.partition("?")[0] for url in sent if "agent" not in url] == ["https://huggingface.co/api/models"]
