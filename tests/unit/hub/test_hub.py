"""Downloading repositories from the Hub, with a local stand-in for its server: requests, cache and refusals."""

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
from support import onnx_files

import tallow as tl
from tallow import hub, onnx
from tallow.errors import HubError, MissingPackageError
from tallow.hub import in_browser, local_folder, local_model, local_settings
from tallow.hub.in_browser import Answer
from tallow.onnx.protobuf import StringStringEntryProto, TensorProto

native = pytest.mark.native
COMMIT = "1" * 40


class FakeHub:
    """A stub of the Hub: repositories as file names and contents, and a log of the requests."""

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
def test_settings_are_fetched_without_weights(fake: FakeHub) -> None:
    fake.repositories["who/words"] = {"tokenizer.json": b"{}", "vocab.txt": b"a"}
    assert (local_settings("who/words") / "vocab.txt").read_bytes() == b"a"
    fake.repositories["who/model"] = FILES
    local_settings("who/model")
    assert not any(name.endswith(".safetensors") for name in fake.fetched)


@native
def test_the_files_of_every_tokenizer_are_fetched(fake: FakeHub) -> None:
    tokenizers = [
        *("tokenizer_config.json", "vocab.txt", "vocab.json", "merges.txt", "spiece.model", "sentencepiece.bpe.model"),
        *("source.spm", "target.spm", "chat_template.jinja", "additional_chat_templates/tool_use.jinja"),
    ]
    fake.repositories["who/model"] = FILES | {name: name.encode() for name in tokenizers}
    local_folder("who/model")
    assert set(tokenizers) < set(fake.fetched)


@native
def test_cached_files_load_offline(fake: FakeHub, monkeypatch: pytest.MonkeyPatch) -> None:
    fake.repositories["who/model"] = FILES
    folder = local_folder("who/model")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    assert local_folder("who/model") == folder
    with pytest.raises(HubError, match="nor in the Hub's cache"):
        local_folder("who/other")


@native
def test_pytorch_files_are_fetched_if_there_are_no_others(fake: FakeHub) -> None:
    fake.repositories["who/older"] = {"config.json": b"{}", "pytorch_model.bin": b"weights"}
    assert (local_folder("who/older") / "pytorch_model.bin").read_bytes() == b"weights"


@native
def test_refusals_have_a_hint(fake: FakeHub) -> None:
    fake.repositories |= {"who/gated": FILES, "who/empty": {"README.md": b""}, "who/model": FILES}
    fake.gated.add("who/gated")
    with pytest.raises(HubError, match=r"accept its terms at https://huggingface\.co/who/gated"):
        local_folder("who/gated")
    with pytest.raises(HubError, match="no folder and no Hub repository who/none"):
        local_folder("who/none")
    with pytest.raises(HubError, match="has neither safetensors nor"):
        local_folder("who/empty")
    with pytest.raises(HubError, match="who/-model- is not a valid repository name"):
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
    with pytest.raises(HubError, match=r"pass one of its GGUF files: who/quantised:tiny-Q4_0\.gguf"):
        local_model("who/quantised")


@native
def test_an_onnx_file_is_fetched_with_its_data(fake: FakeHub) -> None:
    place = [StringStringEntryProto("location", "model.onnx_data")]  # in the cache it is a link
    held = TensorProto(dims=[2], data_type=1, name="w", data_location=1, external_data=place)
    x, y = (onnx_files.value(name, 2) for name in "xy")
    model = onnx_files.encoded_model([onnx_files.node("Add", "x", "w")], [x], [y], [held])
    data = bytes.fromhex("0000803f00000040")
    files = {"onnx/model.onnx": model, "onnx/model.onnx_data": data, "onnx/other.onnx": b"", "model.safetensors": b""}
    fake.repositories["who/exported"] = files
    assert onnx.load("who/exported:onnx/model.onnx")(tl.ones(2)).tolist() == [2.0, 3.0]
    assert sorted(fake.fetched) == ["onnx/model.onnx", "onnx/model.onnx_data"]
    with pytest.raises(HubError, match=r"has no file onnx/missing\.onnx"):
        onnx.load("who/exported:onnx/missing.onnx")


@native
def test_the_other_shards_of_a_gguf_file_are_fetched_with_it(fake: FakeHub) -> None:
    names = [f"q/m-0000{i}-of-00002.gguf" for i in (1, 2)]
    others = ["q/m-00001-of-00003.gguf", "q/n-00001-of-00002.gguf"]
    fake.repositories["who/sharded"] = {name: b"GGUF" + name.encode() for name in (*names, *others)}
    assert local_model(f"who/sharded:{names[0]}").name == "m-00001-of-00002.gguf"
    assert sorted(fake.fetched) == names


def test_a_gguf_file_on_this_machine(tmp_path: Path) -> None:
    file = tmp_path / "model.gguf"
    file.write_bytes(b"GGUF")
    assert local_model(file) == file
    with pytest.raises(HubError, match=r"pass one of the files: .*model\.gguf"):
        local_model(tmp_path)
    file.rename(tmp_path / "nameless")
    assert local_model(tmp_path / "nameless") == tmp_path / "nameless"
    with pytest.raises(HubError, match=r"file not found: .*other\.gguf"):
        local_model(tmp_path / "other.gguf")


@native
def test_without_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(MissingPackageError, match=r"install it: .*huggingface[-_]hub"):
        local_folder("who/model")


def test_folders_go_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "who" / "model").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    assert local_folder("who/model") == Path("who/model")
    assert local_folder(tmp_path) == tmp_path


@pytest.mark.parametrize("name", ["./who/model", "/nowhere/at/all", "a/b/c", "../x", "a b", "https://x/y"])
def test_neither_a_folder_nor_a_name(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(HubError, match="folder not found"):
        local_folder(name)


@pytest.mark.parametrize("name", ["https://x/y.gguf", "C:\\x.gguf", "a/b:/c.gguf", "./a:b.gguf/c.gguf"])
def test_not_a_gguf_file(name: str) -> None:
    with pytest.raises(HubError, match="file not found"):
        local_model(name)


def test_a_file_where_a_folder_is_expected(tmp_path: Path) -> None:
    file = tmp_path / "model.safetensors"
    file.write_bytes(b"")
    with pytest.raises(HubError, match="is a file"):
        local_folder(file)


# ------------------------------------------------------------------------------------------------------ in a browser


class Repository:
    """Answers as the Hub does, for one repository, to requests from Python in a browser."""

    def __init__(self, **files: bytes) -> None:
        self.files = {name.replace("_", "."): content for name, content in files.items()}
        self.answers: list[Answer] = []  # replaces the next responses
        self.asked: list[tuple[str, range | None]] = []
        self.knows_ranges = True

    def __call__(self, url: str, part: range | None, token: str | None) -> Answer:
        path = url.removeprefix("https://huggingface.co/")
        self.asked.append((path, part))
        if self.answers:
            return self.answers.pop(0)
        if path == "api/models/who/model/tree/main?recursive=true":
            return Answer(200, json.dumps(list(self.file_list())).encode())
        name = path.removeprefix("who/model/resolve/main/")
        if name not in self.files:
            return Answer(404, b"")
        content = self.files[name]
        return Answer(206, content[part.start : part.stop]) if part and self.knows_ranges else Answer(200, content)

    def file_list(self) -> Iterator[dict[str, Any]]:
        yield {"type": "directory", "path": "onnx"}
        for name, content in self.files.items():
            oid = hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()  # as `git hash-object` prints it
            lfs = {"lfs": {"oid": hashlib.sha256(content).hexdigest()}} if name.endswith(".safetensors") else {}
            yield {"type": "file", "path": name, "size": len(content), "oid": oid, **lfs}


@pytest.fixture
def repository(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Repository:
    stub = Repository(config_json=b"{}", model_safetensors=bytes(range(100)))
    monkeypatch.setattr(hub, "IN_BROWSER", True)
    monkeypatch.setattr(in_browser, "request", stub)
    monkeypatch.setattr(in_browser, "PAUSES_S", (0, 0))
    monkeypatch.setattr(in_browser, "PART", 40)
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    monkeypatch.delenv("HF_ENDPOINT", raising=False)
    return stub


def requested_ranges(repository: Repository) -> list[range | None]:
    return [part for path, part in repository.asked if path.endswith("model.safetensors")]


@pytest.mark.parametrize("knows_ranges", [True, False])
def test_a_browser_fetches_in_ranges_and_keeps_complete_files(
    repository: Repository, knows_ranges: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    repository.knows_ranges = knows_ranges
    folder = local_folder("who/model")
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == repository.files
    assert requested_ranges(repository) == ([range(40), range(40, 80), range(80, 100)] if knows_ranges else [range(40)])
    assert "model.safetensors: 0.0 of 0.0 MB\n" in capsys.readouterr().err
    repository.asked.clear()
    assert local_folder("who/model") == folder
    assert not requested_ranges(repository)


@pytest.mark.parametrize("name", ["config.json", "model.safetensors"])
def test_a_browser_fetches_a_file_again_that_has_changed_with_the_same_size(repository: Repository, name: str) -> None:
    local_folder("who/model")
    repository.files[name] = bytes(reversed(repository.files[name]))
    repository.asked.clear()
    assert (local_folder("who/model") / name).read_bytes() == repository.files[name]
    assert {path.rpartition("/")[2] for path, part in repository.asked if part} == {name}


def test_a_browser_refuses_another_small_file(repository: Repository) -> None:
    """One whose hash the Hub reports as Git does. The expected hash is from `git hash-object`."""
    file_list = Answer(200, json.dumps(list(repository.file_list())).encode())
    repository.answers = [file_list, Answer(206, b"[]")]
    with pytest.raises(HubError, match=r"has the Git id .*, not 9e26dfeeb6e641a33dae4961196235bdb965b21b"):
        local_folder("who/model")


def test_a_browser_resumes_after_a_failure(repository: Repository) -> None:
    file_list = Answer(200, json.dumps(list(repository.file_list())).encode())
    config, part = Answer(206, b"{}"), Answer(206, bytes(range(40)))
    repository.answers = [Answer(503, b""), Answer(0, b""), file_list, config, part, *[Answer(0, b"")] * 3]
    with pytest.raises(HubError, match=r"model\.safetensors download failed: the Hub cannot be reached"):
        local_folder("who/model")
    repository.asked.clear()
    assert (local_folder("who/model") / "model.safetensors").read_bytes() == bytes(range(100))
    assert requested_ranges(repository) == [range(40, 80), range(80, 100)]


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (Answer(206, bytes(100)), "has the SHA-256"),
        (Answer(200, bytes(101)), "has 101 bytes, not 100"),
        (Answer(206, b""), "has 0 bytes, not 100"),
        (Answer(206, bytes(40), content_range="bytes 40-79/100"), "byte 0 of 100 was asked for"),
        (Answer(206, bytes(40), content_range="bytes 0-39/101"), "has changed: byte 0 of 100"),
        (Answer(206, bytes(40), content_range="bytes */100"), "has changed"),
        (Answer(403, b"", "GatedRepo"), "requires accepting its terms"),
        (Answer(404, b""), "the Hub returned status 404"),
    ],
)
def test_a_browser_refuses_other_weights(repository: Repository, answer: Answer, message: str) -> None:
    file_list = Answer(200, json.dumps(list(repository.file_list())).encode())
    repository.answers = [file_list, Answer(206, b"{}"), answer]
    with pytest.raises(HubError, match=message):
        local_folder("who/model")
    assert (local_folder("who/model") / "model.safetensors").read_bytes() == bytes(range(100))


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (Answer(401, b""), "no folder and no Hub repository who/model"),
        (Answer(200, b"<html>"), "did not return a list of files"),
        (Answer(200, b'[{"type": "file", "path": "../x.json", "size": 1}]'), "did not return a list of files"),
        (
            Answer(200, b'[{"type": "file", "path": "x.gguf", "size": 1}]'),
            "pass one of its GGUF files: who/model:x.gguf",
        ),
    ],
)
def test_a_browser_refuses_other_lists(repository: Repository, answer: Answer, message: str) -> None:
    repository.answers = [answer] * 3
    with pytest.raises(HubError, match=message):
        local_folder("who/model")


@pytest.mark.parametrize(
    "name", ["who/..", "who/.", "../model", "who/model:../../x.gguf", "who/..:x.gguf", "who/model:a/../x.gguf"]
)
def test_names_outside_the_folder_are_never_requested(repository: Repository, name: str) -> None:
    with pytest.raises(HubError, match="not found"):
        local_model(name)
    assert not repository.asked


@pytest.mark.parametrize("revision", ["", ".", "..", "../x", "a/../../x"])
def test_revisions_outside_the_folder_are_never_requested(repository: Repository, revision: str) -> None:
    for name in ("who/model", "who/model:x.gguf"):
        with pytest.raises(HubError, match="has no revision"):
            local_model(name, revision=revision)
    assert not repository.asked


def test_a_browser_that_cannot_block_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub, "IN_BROWSER", True)
    for name in ("who/model", "who/model:x.gguf"):
        with pytest.raises(HubError, match="fetch the files in the page"):
            local_model(name)


@pytest.mark.parametrize(
    "answer",
    [
        *(b"null", b"{}", b"[1]", b"\xff", b"[" * 100_000, b'[{"type": "file"}]'),
        *(b'[{"type": "file", "path": "a", "size": %s}]' % size for size in (b"Infinity", b"-1", b"1.5")),
        *(b'[{"type": "file", "path": %s, "size": 1}]' % path for path in (b'"../a"', b'["a"]')),
        b'[{"type": "file", "path": "a", "size": 1, "lfs": "x"}]',
    ],
)
def test_an_answer_that_lists_no_files_is_refused(answer: bytes) -> None:
    with pytest.raises(HubError, match="did not return a list of files"):
        in_browser.parse_listing(answer)
