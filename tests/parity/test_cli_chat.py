"""`tallow generate` and `tallow chat` with folders saved by transformers, compared with transformers' answers."""

from __future__ import annotations

import io
import re
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from support.chats import CHATML, TURNS, save_tokenizer
from support.terminal import Terminal

import tallow as tl
from tallow.cli import main
from tallow.errors import ArgumentError, TokenizerError
from tallow.generation import PromptCache, Sampler
from tallow.models import AutoModel
from tallow.text import Tokenizer

transformers = pytest.importorskip("transformers")

VOCAB = 300
SIZES = {"vocab_size": VOCAB, "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2}
SIZES |= {"num_attention_heads": 4, "num_key_value_heads": 2, "initializer_range": 0.2, "bos_token_id": 0}
USER = {"role": "user", "content": "Where is the cat?"}


def save_model(folder: Path, kind: str = "Llama", context: int = 512, **sizes: Any) -> Any:
    torch.manual_seed(0)
    config = getattr(transformers, f"{kind}Config")(
        **SIZES | {"max_position_embeddings": context, "eos_token_id": None} | sizes
    )
    model = getattr(transformers, f"{kind}ForCausalLM")(config).eval()
    model.save_pretrained(folder)
    return model


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("chatty")
    save_tokenizer(folder, CHATML, VOCAB)
    save_model(folder)
    return folder


def expected_text(folder: Path, ids: list[int], max_new_tokens: int) -> str:
    """Return transformers' continuation of the ids, up to the tokenizer's </s>."""
    model = transformers.AutoModelForCausalLM.from_pretrained(folder)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    prompt = torch.tensor([ids])
    options = {"do_sample": False, "eos_token_id": 1, "pad_token_id": 0, "attention_mask": torch.ones_like(prompt)}
    generated = model.generate(prompt, max_new_tokens=max_new_tokens, **options)
    return tokenizer.decode(generated[0, len(ids) :], skip_special_tokens=True)


def test_models_answer_as_in_transformers(folder: Path) -> None:
    lm = AutoModel.from_pretrained(folder)
    assert isinstance(lm.tokenizer, Tokenizer)
    ids = lm.tokenizer.apply_chat_template([USER], add_generation_prompt=True)
    pieces = list(lm.chat([USER], max_tokens=40))
    assert "".join(pieces) == expected_text(folder, ids, 40)
    assert len(pieces) > 10
    ids = lm.tokenizer.encode("The cat sat")
    assert "".join(lm.generate_text("The cat sat", max_tokens=40)) == expected_text(folder, ids, 40)


def test_stop_strings_and_samplers(folder: Path) -> None:
    lm = AutoModel.from_pretrained(folder)
    text = "".join(lm.chat([USER], max_tokens=40, sample=Sampler(seed=3)))
    stop = text[11:14]
    assert "".join(lm.chat([USER], max_tokens=40, stop=[stop], sample=Sampler(seed=3))) == text[: text.index(stop)]


def copy_folder(folder: Path, to: Path, generation_config: str) -> None:
    for file in folder.iterdir():
        (to / file.name).write_bytes(file.read_bytes())
    (to / "generation_config.json").write_text(generation_config)


def test_stop_ids_come_from_every_file(folder: Path, tmp_path: Path) -> None:
    copy_folder(folder, tmp_path, '{"eos_token_id": [7, 9]}')
    config = (tmp_path / "config.json").read_text()
    (tmp_path / "config.json").write_text(config.replace('"eos_token_id": null', '"eos_token_id": 5'))
    assert AutoModel.from_pretrained(tmp_path).stop_ids == {1, 5, 7, 9}
    assert AutoModel.from_pretrained(folder).stop_ids == {1}


def test_a_cache_avoids_recomputation(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lm = AutoModel.from_pretrained(folder)
    cache = PromptCache(lm)
    read: list[int] = []
    last_logits = type(lm).last_logits

    def recording_logits(self: Any, tokens: list[list[int]], *rest: Any) -> tl.Tensor:
        read.append(len(tokens[0]))
        return last_logits(self, tokens, *rest)

    monkeypatch.setattr(type(lm), "last_logits", recording_logits)
    first = "".join(lm.chat([USER], max_tokens=20, cache=cache))
    assert first == "".join(lm.chat([USER], max_tokens=20))
    longer = [USER, {"role": "assistant", "content": "On the mat."}, {"role": "user", "content": "And now?"}]
    read.clear()
    again = "".join(lm.chat(longer, max_tokens=20, cache=cache))
    spared = max(read)
    read.clear()
    assert again == "".join(lm.chat(longer, max_tokens=20))
    assert spared < max(read)
    # The same prompt again: one token must be read for its logits.
    read.clear()
    assert again == "".join(lm.chat(longer, max_tokens=20, cache=cache))
    assert max(read, default=1) == 1


def test_a_model_without_a_folder_has_no_tokenizer(folder: Path) -> None:
    lm = AutoModel.from_pretrained(folder)
    model = type(lm)(lm.config).eval()
    with pytest.raises(TokenizerError, match="not loaded from a folder"):
        model.chat([USER])
    model.tokenizer = Tokenizer.from_pretrained(folder)
    assert len(list(model.chat([USER], max_tokens=3))) <= 3
    with pytest.raises(ArgumentError, match="the model's context holds 512"):
        model.chat([{"role": "user", "content": "cat " * 600}])


# ------------------------------------------------------------------------------------------------------------ commands


def test_generate_continues_the_prompt(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ids = Tokenizer.from_pretrained(folder).encode("once upon a ")
    expected = expected_text(folder, ids, 31)
    steps = len(ids) + 30
    options = ["generate", "--model", str(folder), "once upon a ", "--temperature", "0", "--steps", str(steps)]
    assert main(options) == 0
    out, err = capsys.readouterr()
    assert out == "once upon a " + expected + "\n"
    assert re.search(r"^loaded .* in \d", err, re.MULTILINE)


def test_generate_begins_with_bos(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO()))
    assert main(["generate", "--model", str(folder), "--temperature", "0", "--steps", "20"]) == 0
    assert capsys.readouterr().out == expected_text(folder, [0], 20) + "\n"


def test_texts_follow_the_generation_config(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    copy_folder(folder, tmp_path, '{"do_sample": false, "temperature": 9.0, "repetition_penalty": 1.5}')
    ids = Tokenizer.from_pretrained(folder).encode("once upon a ")
    expected = expected_text(tmp_path, ids, 30)
    assert expected != expected_text(folder, ids, 30)
    lm = AutoModel.from_pretrained(tmp_path)
    assert "".join(lm.generate_text("once upon a ", max_tokens=30)) == expected
    command = ["generate", "--model", str(tmp_path), "once upon a ", "--steps", str(len(ids) + 29)]
    assert main(command) == 0
    assert capsys.readouterr().out == "once upon a " + expected + "\n"
    assert main([*command, "--repetition-penalty", "1"]) == 0
    assert capsys.readouterr().out == "once upon a " + expected_text(folder, ids, 30) + "\n"
    answer = "".join(lm.chat([USER], max_tokens=8))
    assert pipe_stdin(monkeypatch, USER["content"] + "\n", "--model", tmp_path, "--max-tokens", 8) == 0
    assert capsys.readouterr().out == answer + "\n"


def pipe_stdin(monkeypatch: pytest.MonkeyPatch, lines: str, *options: Any) -> int:
    monkeypatch.setattr("sys.stdin", io.StringIO(lines))
    return main(["chat", *map(str, options)])


def test_chat_answers_each_line(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lm = AutoModel.from_pretrained(folder)
    system = {"role": "system", "content": "You are a cat."}

    def answer(*messages: dict[str, str]) -> dict[str, str]:
        return {"role": "assistant", "content": "".join(lm.chat(list(messages), max_tokens=8))}

    first, second = ({"role": "user", "content": text} for text in ("Where is it?", "And now?"))
    one = answer(system, first)
    two = answer(system, first, one, second)
    anew = answer(system, second)
    status = pipe_stdin(
        monkeypatch,
        "Where is it?\n\nAnd now?\n/reset\nAnd now?\n/exit\nnever\n",
        *("--model", folder, "--temperature", 0, "--max-tokens", 8, "--system", "You are a cat."),
    )
    assert status == 0
    expected = "".join(reply["content"] + "\n" for reply in (one, two, anew))
    assert capsys.readouterr().out == expected


def assert_refused(capsys: pytest.CaptureFixture[str], *messages: str) -> None:
    out, err = capsys.readouterr()
    assert out.strip() == ""
    (error,) = [line for line in err.splitlines() if "error:" in line]
    assert all(text in error for text in messages)


def test_models_without_a_chat_template_are_refused(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    plain, encoder, polite = tmp_path / "plain", tmp_path / "encoder", tmp_path / "polite"
    save_tokenizer(plain, None, VOCAB)
    save_model(plain)
    save_tokenizer(polite, TURNS, VOCAB)
    save_model(polite, context=16)
    bert = transformers.BertConfig(vocab_size=9, hidden_size=8, num_hidden_layers=1, num_attention_heads=2)
    transformers.BertModel(bert).save_pretrained(encoder)
    assert pipe_stdin(monkeypatch, "hi\n") == 2
    assert_refused(capsys, "--model is missing", "tallow chat --model Qwen/Qwen3-0.6B")
    assert pipe_stdin(monkeypatch, "hi\n", "--model", plain) == 2
    assert_refused(capsys, "has no chat template", "tallow generate")
    for command in (["chat"], ["generate"]):
        assert main([*command, "--model", str(encoder)]) == 2
        assert_refused(capsys, "is a BertModel, not a language model")
    assert pipe_stdin(monkeypatch, "hi\n", "--model", polite, "--system", "Be polite.") == 2
    assert_refused(capsys, "the chat template refuses the messages: there is no system role")
    assert pipe_stdin(monkeypatch, "cat " * 30, "--model", polite) == 2
    assert_refused(capsys, "tokens, the model's context holds 16; shorten the prompt")
    assert main(["generate", "--model", str(polite), "cat " * 30]) == 2
    assert_refused(capsys, "tokens, the model's context holds 16; shorten the prompt")


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    """Chat with a model whose answers never end."""
    pytest.importorskip("pty", reason="needs pseudo-terminals")
    save_tokenizer(tmp_path, CHATML, VOCAB)
    model = save_model(tmp_path, context=1 << 20)
    with torch.no_grad():  # the tokens that end an answer score 0, and of 300 others one always scores more
        model.lm_head.weight[list(AutoModel.from_pretrained(tmp_path).stop_ids)] = 0
    model.save_pretrained(tmp_path)
    terminal = Terminal("--model", tmp_path, "--temperature", 0)
    yield terminal
    terminal.close()


def test_a_conversation_in_a_terminal(terminal: Terminal) -> None:
    terminal.until("> ")
    for text in ("hello", "again"):
        terminal.type(f"{text}\n")
        terminal.until("\n")  # the echo
        terminal.read()  # the answer
        terminal.process.send_signal(signal.SIGINT)
        terminal.until("\n> ")
    terminal.type("half a li")
    terminal.until("li")
    terminal.process.send_signal(signal.SIGINT)
    terminal.type("\n")  # CPython's readline may notice the signal only at the end of the next line
    terminal.until("> ")
    terminal.type("\x04")  # Ctrl-D
    assert terminal.process.wait(60) == 0
