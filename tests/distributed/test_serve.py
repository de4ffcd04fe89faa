"""`tallow serve` in two processes that divide a model: the texts of one process; all end together."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest
from openai import OpenAI
from support.chats import save_tokenizer
from support.serve_process import client_of, serving
from support.small_models import ENTRIES
from tests.distributed.conftest import start

import tallow as tl
from tallow.distributed.run import find_mpiexec
from tallow.generation import generate
from tallow.io import safetensors
from tallow.models.auto import AutoModel
from tallow.models.decoders.llama import Llama, LlamaConfig

PROMPT = "Once upon a time there was a small model, and it was divided among two processes. "


def write(folder: Path, kind: str) -> Path:
    """Write a small model with random weights and a tokenizer."""
    folder /= kind
    folder.mkdir()
    entries = ENTRIES[kind] | {"vocab_size": 300, "max_position_embeddings": 512, "initializer_range": 0.3}
    entries["num_key_value_heads"] = 2
    (folder / "config.json").write_text(json.dumps(entries | {"architectures": [f"{kind}ForCausalLM"]}))
    if kind == "Llama":
        tl.manual_seed(0)
        state = Llama(LlamaConfig.from_json(folder / "config.json")).state_dict()
        safetensors.save(state, folder / "model.safetensors")
    save_tokenizer(folder)
    return folder


@dataclass
class Server:
    """A server in two processes; `folder` has its model."""

    folder: Path
    process: subprocess.Popen[str]
    client: OpenAI

    def text(self, prompt: str, max_tokens: int = 20) -> str:
        answer = self.client.completions.create(
            model=self.folder.name, prompt=prompt, max_tokens=max_tokens, temperature=0
        )
        return answer.choices[0].text


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    folder, mpiexec = write(tmp_path, "Llama"), (find_mpiexec(), "-n", "2")
    options = "--model", str(folder), "--slots", "3"
    with serving(*options, cwd=tmp_path, launcher=mpiexec) as (process, url), client_of(url) as client:
        yield Server(folder, process, client)


def test_texts_are_those_of_one_process_and_ctrl_c_ends_both(server: Server, tmp_path: Path) -> None:
    model = AutoModel.from_pretrained(server.folder)
    words = model.tokenizer
    assert words is not None
    prompts = [PROMPT * n + "x" * n for n in range(1, 6)]
    wanted = []
    for prompt in prompts:
        tokens = words.encode(prompt)
        wanted.append(words.decode(generate(model, tokens, max_tokens=20, stop_ids=model.stop_ids)))
    with ThreadPoolExecutor(5) as pool:  # more than slots
        assert list(pool.map(server.text, prompts)) == wanted
    assert [server.text(prompt) for prompt in prompts] == wanted  # from known beginnings
    usage = server.client.completions.create(model=server.folder.name, prompt=prompts[4], max_tokens=1).usage
    assert usage is not None
    assert usage.prompt_tokens_details is not None
    assert usage.prompt_tokens_details.cached_tokens
    stream = server.client.completions.create(model=server.folder.name, prompt="a", max_tokens=400, stream=True)
    next(stream)
    stream.close()  # its slot is free at the next step
    assert server.text(prompts[0]) == wanted[0]
    server.process.send_signal(signal.SIGINT)
    server.process.wait(60)
    log = (tmp_path / "log").read_text()
    assert "rror" not in log.replace('"status"', ""), log


@pytest.mark.parametrize(
    ("kind", "options", "message"),
    [
        (None, [], "no --model to divide"),
        ("Qwen3", [], "is a Qwen3, which 2 processes cannot divide"),
        ("Llama", ["--quant", "q8_0"], "--quant with 2 processes"),
        ("Llama", ["--replicas", "2"], "--replicas with 2 processes"),
        ("Llama", ["--batch-invariant"], "batch_invariant"),
    ],
)
def test_what_cannot_be_divided_is_refused(kind: str | None, options: list[str], message: str, tmp_path: Path) -> None:
    model = [] if kind is None else ["--model", str(write(tmp_path, kind))]
    done = start(2, "-m", "tallow", "serve", "--port", "0", *model, *options)
    assert done.returncode != 0
    assert message in done.stderr
    assert "Traceback" not in done.stderr
