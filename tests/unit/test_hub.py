"""Fetching repositories of the Hub, against a server that answers as it does: what is fetched, kept and refused."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from tallow import hub
from tallow.errors import HubError, MissingPackageError
from tallow.hub import local_folder, local_model

native = pytest.mark.native
COMMIT = "1" * 40


class FakeHub:
    """Repositories, as file names and contents; and what has been asked of them."""

    def __init__(self) -> None:
        self.repositories: dict[str, dict[str, bytes]] = {}
        self.gated: set[str] = set()
        self.fetched: list[str] = []
        hub = self

        class Handler(BaseHTTPRequestHandler):
            def do_HEAD(self) -> None:
                self.answer(body=False)

            def do_GET(self) -> None:
                self.answer(body=True)

            def answer(self, body: bool) -> None:
                status, headers, content = hub.reply(self.path, body)
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                if body:
                    self.wfile.write(content)

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def reply(self, path: str, body: bool) -> tuple[int, dict[str, str], bytes]:
        path = path.partition("?")[0]
        repository = "/".join((path.removeprefix("/api/models")).split("/")[1:3])
        if repository not in self.repositories:
            return 404, {"X-Error-Code": "RepoNotFound"}, b""
        files = self.repositories[repository]
        if path.startswith("/api/models/"):
            if "/revision/" in path and path.rpartition("/")[2] not in ("main", COMMIT):
                return 404, {"X-Error-Code": "RevisionNotFound"}, b""
            siblings = [{"rfilename": name} for name in files]
            if "/tree/" in path:
                tree = [{"type": "file", "path": n, "size": len(c), "oid": "0" * 40} for n, c in files.items()]
                return 200, {"Content-Type": "application/json"}, json.dumps(tree).encode()
            info = {"_id": "0", "id": repository, "sha": COMMIT, "siblings": siblings}
            return 200, {"Content-Type": "application/json"}, json.dumps(info).encode()
        if repository in self.gated:
            return 403, {"X-Error-Code": "GatedRepo"}, b""
        name = path.split("/resolve/")[1].partition("/")[2]
        if body:
            self.fetched.append(name)
        content = files[name]
        return 200, {"ETag": f'"{hashlib.sha1(content).hexdigest()}"', "X-Repo-Commit": COMMIT}, content


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[FakeHub]:
    constants = pytest.importorskip("huggingface_hub.constants")
    server = FakeHub()
    thread = Thread(target=server.server.serve_forever, daemon=True)
    thread.start()
    monkeypatch.setattr(constants, "ENDPOINT", server.url)
    monkeypatch.setattr(
        constants, "HUGGINGFACE_CO_URL_TEMPLATE", server.url + "/{repo_id}/resolve/{revision}/{filename}"
    )
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("HF_ENDPOINT", server.url)
    yield server
    server.server.shutdown()
    server.server.server_close()
    thread.join()


FILES = {
    "config.json": b"{}",
    "model.safetensors": b"weights",
    "pytorch_model.bin": b"the same weights",
    "onnx/model.onnx": b"and again",
    "1_Pooling/config.json": b"{ }",
    "README.md": b"words",
}


@native
def test_a_repository_is_fetched_once_and_no_more_of_it_than_needed(fake: FakeHub) -> None:
    fake.repositories["who/model"] = FILES
    folder = local_folder("who/model")
    assert (folder / "model.safetensors").read_bytes() == b"weights"
    assert (folder / "1_Pooling" / "config.json").exists()
    assert sorted(fake.fetched) == ["1_Pooling/config.json", "config.json", "model.safetensors"]
    assert local_folder("who/model") == folder
    assert len(fake.fetched) == 3


@native
def test_what_was_fetched_is_there_without_the_hub(fake: FakeHub, monkeypatch: pytest.MonkeyPatch) -> None:
    fake.repositories["who/model"] = FILES
    folder = local_folder("who/model")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    assert local_folder("who/model") == folder
    with pytest.raises(HubError, match="is not in the cache"):
        local_folder("who/other")


@native
def test_pytorchs_files_are_fetched_where_there_are_no_others(fake: FakeHub) -> None:
    fake.repositories["who/older"] = {"config.json": b"{}", "pytorch_model.bin": b"weights"}
    assert (local_folder("who/older") / "pytorch_model.bin").read_bytes() == b"weights"


@native
def test_refusals_say_what_to_do(fake: FakeHub) -> None:
    fake.repositories |= {"who/gated": FILES, "who/empty": {"README.md": b""}, "who/model": FILES}
    fake.gated.add("who/gated")
    with pytest.raises(HubError, match=r"accept its terms at https://huggingface\.co/who/gated"):
        local_folder("who/gated")
    with pytest.raises(HubError, match="the Hub has no repository who/none"):
        local_folder("who/none")
    with pytest.raises(HubError, match="has neither safetensors nor"):
        local_folder("who/empty")
    with pytest.raises(HubError, match="who/-model- is no name of a repository"):
        local_folder("who/-model-")
    with pytest.raises(HubError, match="has no revision 'draft'"):
        local_folder("who/model", revision="draft")


@native
def test_a_gguf_file_is_fetched_by_its_name(fake: FakeHub) -> None:
    fake.repositories["who/quantised"] = {"README.md": b"", "tiny-Q8_0.gguf": b"GGUF", "tiny-Q4_0.gguf": b"GGUF"}
    path = local_model("who/quantised:tiny-Q8_0.gguf")
    assert path.name == "tiny-Q8_0.gguf"
    assert local_model(path) == path
    assert fake.fetched == ["tiny-Q8_0.gguf"]
    with pytest.raises(HubError, match=r"has no file tiny-Q2_K\.gguf\n.*it has tiny-Q4_0\.gguf, tiny-Q8_0\.gguf"):
        local_model("who/quantised:tiny-Q2_K.gguf")
    with pytest.raises(HubError, match=r"name one of its GGUF files: who/quantised:tiny-Q4_0\.gguf"):
        local_model("who/quantised")


def test_a_gguf_file_on_this_machine(tmp_path: Path) -> None:
    file = tmp_path / "model.gguf"
    file.write_bytes(b"GGUF")
    assert local_model(file) == file
    with pytest.raises(HubError, match=r"name one of the files: .*model\.gguf"):
        local_model(tmp_path)
    file.rename(tmp_path / "nameless")
    assert local_model(tmp_path / "nameless") == tmp_path / "nameless"
    with pytest.raises(HubError, match=r"there is no file .*other\.gguf"):
        local_model(tmp_path / "other.gguf")


@native
def test_without_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(MissingPackageError, match=r"tallow\[hub\]"):
        local_folder("who/model")


def test_folders_go_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "who" / "model").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    assert local_folder("who/model") == Path("who/model")
    assert local_folder(tmp_path) == tmp_path


@pytest.mark.parametrize("name", ["./who/model", "/nowhere/at/all", "a/b/c", "../x", "a b", "https://x/y"])
def test_what_is_neither_a_folder_nor_a_name(name: str) -> None:
    with pytest.raises(HubError, match="there is no folder"):
        local_folder(name)


@pytest.mark.parametrize("name", ["https://x/y.gguf", "C:\\x.gguf", "a/b:/c.gguf", "./a:b.gguf/c.gguf"])
def test_what_is_no_gguf_file(name: str) -> None:
    with pytest.raises(HubError, match="there is no file"):
        local_model(name)


def test_file_in_place_of_a_folder(tmp_path: Path) -> None:
    file = tmp_path / "model.safetensors"
    file.write_bytes(b"")
    with pytest.raises(HubError, match="is a file"):
        local_folder(file)


def test_a_browser_says_that_it_cannot(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub.sys, "platform", "emscripten")
    for name in ("who/model", "who/model:x.gguf"):
        with pytest.raises(HubError, match="fetch the files in the page"):
            local_model(name)
