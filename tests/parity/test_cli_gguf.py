"""From a Hugging Face folder to a conversation with a quantised GGUF file: the commands of a first session."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from support.qwen3 import save_qwen3
from support.terminal import Terminal

from tallow.cli import main
from tallow.errors import escaped
from tallow.text import Tokenizer

transformers = pytest.importorskip("transformers")
gguf = pytest.importorskip("gguf")

GREEDY = ["--temperature", "0"]
USER = {"role": "user", "content": "Where is the cat?"}


@pytest.fixture(scope="module")
def converted(tmp_path_factory: pytest.TempPathFactory, data_dir: Path) -> tuple[Path, Any]:
    """The GGUF file of a random Qwen3, and transformers' model with the weights in it."""
    folder = tmp_path_factory.mktemp("qwen3")
    model = save_qwen3(folder / "qwen3", data_dir / "gpt2.tiktoken")
    path = folder / "qwen3-q4.gguf"
    assert main(["convert", str(folder / "qwen3"), str(path), "--quant", "q4_k_m"]) == 0
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.QWEN3, 4)
    tensors = {tensor.name: tensor for tensor in gguf.GGUFReader(path).tensors}
    state = model.state_dict()
    for name in state:
        if name != "lm_head.weight":
            tensor = tensors.pop(names.get_name(name, try_suffixes=(".weight",)))
            array = gguf.quants.dequantize(tensor.data, tensor.tensor_type)
            state[name].copy_(torch.from_numpy(np.array(array)).reshape(state[name].shape))
    assert not tensors
    return path, model


def answer(path: Path, model: Any, ids: list[int], count: int) -> str:
    """Return transformers' continuation of the ids."""
    with torch.no_grad():
        prompt = torch.tensor([ids])
        out = model.generate(prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=count, do_sample=False)
    return Tokenizer.from_pretrained(path).decode(out[0, len(ids) :].tolist(), skip_special_tokens=True)


def test_inspect(converted: tuple[Path, Any], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", str(converted[0])]) == 0
    out = capsys.readouterr().out
    for word in (
        "GGUF",
        "qwen3",
        "bits per weight",
        "Q4_K",
        "Q6_K",
        "blk.3.ffn_down.weight",
        "tokenizer.chat_template",
    ):
        assert word in out
    tokenizer = Tokenizer.from_pretrained(converted[0])
    text = "The cat's 12 friends\n\nsleep. <|im_end|> Žluťoučký"
    theirs = transformers.AutoTokenizer.from_pretrained(converted[0].parent / "qwen3")
    assert tokenizer.encode(text) == theirs(text)["input_ids"]


def test_generate(converted: tuple[Path, Any], capsys: pytest.CaptureFixture[str]) -> None:
    path, model = converted
    ids = Tokenizer.from_pretrained(path).encode("Once upon a time")
    expected = answer(path, model, ids, 20)
    steps = str(len(ids) + 19)
    options = ["generate", "--model", str(path), *GREEDY, "--steps", steps, "Once upon a time"]
    assert main([*options, "--dtype", "float32"]) == 0
    assert capsys.readouterr().out == f"Once upon a time{expected}\n"
    assert main(options) == 0
    assert len(capsys.readouterr().out) > len("Once upon a time\n")


@pytest.fixture
def terminal(converted: tuple[Path, Any]) -> Iterator[Terminal]:
    pytest.importorskip("pty", reason="needs pseudo-terminals")
    options = [*GREEDY, "--max-tokens", 12, "--dtype", "float32"]
    terminal = Terminal("--model", converted[0], *options)
    yield terminal
    terminal.close()


def test_a_conversation_in_a_terminal(terminal: Terminal, converted: tuple[Path, Any]) -> None:
    path, model = converted
    tokenizer = Tokenizer.from_pretrained(path)
    expected = answer(path, model, tokenizer.apply_chat_template([USER], add_generation_prompt=True), 12)
    terminal.until("> ")
    terminal.type(f"{USER['content']}\n")
    said = terminal.until("\n> ")
    letters = [re.sub(r"\s|\ufffd", "", text) for text in (escaped(expected), said)]
    assert letters[0] in letters[1]
    assert letters[0]
    terminal.type("\x04")  # Ctrl-D
    assert terminal.process.wait(60) == 0


def test_json(converted: tuple[Path, Any], capsys: pytest.CaptureFixture[str]) -> None:
    """The types of the file are those of llama-quantize: more bits in some layers, Q6_K for the tied head."""
    assert main(["inspect", "--json", str(converted[0])]) == 0
    shown = json.loads(capsys.readouterr().out)
    types = {tensor["name"]: tensor["dtype"] for tensor in shown["tensors"]}
    assert types["token_embd.weight"] == "Q6_K"
    assert {types[f"blk.{i}.attn_q.weight"] for i in range(4)} == {"Q4_K"}
