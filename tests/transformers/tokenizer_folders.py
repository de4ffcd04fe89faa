"""Folders with small tokenizers of every kind, as they lie on the Hub."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from support.tokenizer_kinds import KINDS

from tallow.text.languages import LANGUAGES

LONG = {"model_max_length": 256}
CHAT = (
    "{% if tools %}{{ tools | tojson }}\n{% endif %}{% for d in documents or [] %}{{ d.title }}: {{ d.text }}\n"
    "{% endfor %}{% for m in messages %}[{{ m.role }}]{% if m.role == 'assistant' %}{% generation %} {{ m.content }} "
    "{% endgeneration %}{% else %} {{ m.content }} {% endif %}[/]\n{% endfor %}"
    "{% if add_generation_prompt %}[assistant]{% endif %}{{ mood }}"
)
_WORDS = {f"{name}_token": f"[{name.upper()}]" for name in ("unk", "pad", "cls", "sep", "mask")}
_FAIRSEQ = {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>", "pad_token": "<pad>", "mask_token": "<mask>"}
# For each class of tokenizers: the kind of vocabulary, and entries of its config.
CLASSES: dict[str, tuple[str, dict[str, Any]]] = {
    "BertTokenizer": ("words-uncased", _WORDS | {"do_lower_case": True}),
    "DistilBertTokenizer": ("words-cased", _WORDS | {"do_lower_case": False}),
    "GPT2Tokenizer": ("bytes-gpt2", {"pad_token": "<|endoftext|>"}),
    "RobertaTokenizer": ("bytes-roberta", _FAIRSEQ),
    "LlamaTokenizer": ("pieces-llama2", {"pad_token": "<unk>"}),
    "PreTrainedTokenizerFast": (
        "bytes-llama3",
        {"bos_token": "<|begin|>", "eos_token": "<|end|>", "padding_side": "left"} | LONG,
    ),
    "XLMRobertaTokenizer": ("unigram", _FAIRSEQ),
    "WhisperTokenizer": ("bytes-gpt2", {"pad_token": "<|endoftext|>", "eos_token": "<|endoftext|>"}),
}


def write(base: Path, name: str) -> str:
    """Write the folder of a class, and return its path."""
    kind, config = CLASSES[name]
    folder = base / name
    folder.mkdir()
    (folder / "tokenizer.json").write_text(KINDS[kind](), encoding="utf-8")
    config = {"tokenizer_class": name, "model_max_length": 64, "chat_template": CHAT, "pad_token": "<pad>"} | config
    (folder / "tokenizer_config.json").write_text(json.dumps(config), encoding="utf-8")
    return str(folder)


def write_whisper(base: Path) -> str:
    """Write the folder of a Whisper tokenizer with a few languages, and return its path."""
    folder = Path(write(base, "WhisperTokenizer"))
    entries = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))
    names = ["startoftranscript", *LANGUAGES, "translate", "transcribe", "startoflm", "startofprev", "nospeech"]
    special = [f"<|{name}|>" for name in (*names, "notimestamps")]
    vocab, end = entries["model"]["vocab"], "<|endoftext|>"
    first = len(vocab)
    last = next(word for word, id in vocab.items() if id == first - 1)
    vocab[last], vocab[end] = vocab[end], first - 1  # the special tokens are the last ones
    entries["added_tokens"][0]["id"] = first - 1
    words = [*special, *(f"<|{i * 0.02:.2f}|>" for i in range(1501))]
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    entries["added_tokens"] += [
        {"id": first + i, "content": word, "special": word in special, **flags} for i, word in enumerate(words)
    ]
    (folder / "tokenizer.json").write_text(json.dumps(entries), encoding="utf-8")
    config = json.loads((folder / "tokenizer_config.json").read_text(encoding="utf-8"))
    config |= {"additional_special_tokens": special, "model_max_length": 448}
    (folder / "tokenizer_config.json").write_text(json.dumps(config), encoding="utf-8")
    return str(folder)
