"""Folders with small tokenizers of every kind, as they lie on the Hub."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from support.tokenizer_kinds import KINDS

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
