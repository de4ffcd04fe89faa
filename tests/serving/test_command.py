"""`tallow serve` as a process, and the programs of docs/serving.md against it."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from support.chats import save_tokenizer
from support.guides import program
from support.paths import ROOT
from support.serve_process import client_of, serving
from support.small_models import ENTRIES
from support.small_server import HANG_S

import tallow as tl
from tallow.io import safetensors
from tallow.models.auto import AutoModel
from tallow.models.decoders.qwen import Qwen3, Qwen3Config


def test_the_guide_and_the_end(tmp_path: Path) -> None:
    """The built-in models answer the guide's programs; SIGTERM lets a stream end."""
    with serving(cwd=tmp_path) as (process, url):
        (tmp_path / "tallow").symlink_to(ROOT)  # the guide installs from this folder
        source = program(ROOT / "docs/serving.md", "py").replace("http://127.0.0.1:8000", url.removesuffix("/v1"))
        assert url in source
        done = subprocess.run(
            [sys.executable, "-c", source], cwd=tmp_path, capture_output=True, text=True, timeout=HANG_S
        )
        assert done.returncode == 0, done.stderr
        with client_of(url) as client:
            stream = client.completions.create(model="stories", prompt="Lily", max_tokens=240, seed=1, stream=True)
            pieces = [next(stream).choices[0].text]
            process.send_signal(signal.SIGTERM)
            chunks = list(stream)
            assert chunks[-1].choices[0].finish_reason in ("length", "stop")
            assert len(pieces) + len(chunks) > 20
        assert process.wait(HANG_S) == -signal.SIGTERM
    log = (tmp_path / "log").read_text()
    assert '"status": 200' in log
    assert "Lily" not in log


def test_a_folder_with_a_chat_template(tmp_path: Path) -> None:
    folder = tmp_path / "small-qwen"
    folder.mkdir()
    entries = ENTRIES["Qwen3"] | {"vocab_size": 300, "max_position_embeddings": 512, "eos_token_id": 1}
    (folder / "config.json").write_text(json.dumps(entries | {"architectures": ["Qwen3ForCausalLM"]}))
    tl.manual_seed(0)
    safetensors.save(Qwen3(Qwen3Config.from_json(folder / "config.json")).state_dict(), folder / "model.safetensors")
    save_tokenizer(folder)
    messages = [{"role": "user", "content": "Hello!"}]
    wanted = "".join(AutoModel.from_pretrained(folder).chat(messages, max_tokens=20))
    with serving("--model", str(folder), "--slots", "2", cwd=tmp_path) as (_, url), client_of(url) as client:
        assert [model.id for model in client.models.list()] == ["small-qwen"]
        answer = client.chat.completions.create(model="small-qwen", messages=messages, max_tokens=20, temperature=0)
        assert answer.choices[0].message.content == wanted
        assert answer.usage.prompt_tokens > len("Hello!")


BAD_OPTIONS = {
    "--tls-key a": "pass both",
    "--tls-key a --tls-certificate b": "a: No such file or directory",
    "--tls-key pipe --tls-certificate text": "pipe is a named pipe, not a regular file",
    "--tls-key text --tls-certificate /dev/null": "/dev/null is a character device, not a regular file",
    "--tls-key text --tls-certificate text": "text and text are not a certificate and its private key in PEM",
    "--host 203.0.113.1": "not an address of this computer",
    "--slots 0": "1 or more",
}


@pytest.mark.parametrize(("options", "message"), BAD_OPTIONS.items(), ids=BAD_OPTIONS)
def test_bad_options(options: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "text").write_text("Not a certificate.")
    os.mkfifo(tmp_path / "pipe")
    command = [sys.executable, "-m", "tallow", "serve", "--port", "0", *options.split()]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=HANG_S)
    assert done.returncode == 2
    assert re.search(f"tallow serve: error: .*({message})", done.stderr), done.stderr
    assert "Traceback" not in done.stderr


def test_tallow_does_not_import_the_server() -> None:
    code = "import sys, tallow, tallow.cli.serve, tallow.serving; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not {"starlette", "uvicorn", "prometheus_client"} & set(loaded)
