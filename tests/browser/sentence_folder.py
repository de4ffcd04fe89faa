"""A small sentence encoder for the bert page."""

from __future__ import annotations

import json
from pathlib import Path

from support import tokenizer_kinds

import tallow as tl
from tallow.io import safetensors
from tallow.models import BertConfig, BertModel


def write_sentence_folder(folder: Path) -> Path:
    """Write a sentence-transformers folder with an untrained model, and return it."""
    (folder / "1_Pooling").mkdir(parents=True)
    tokenizer = tokenizer_kinds.KINDS["words-uncased"]()
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    vocabulary = 1 + max(json.loads(tokenizer)["model"]["vocab"].values())
    entries = {"model_type": "bert", "architectures": ["BertModel"], "vocab_size": vocabulary, **sizes}
    parts = [("Transformer", ""), ("Pooling", "1_Pooling"), ("Normalize", "2_Normalize")]
    modules = [{"path": place, "type": f"sentence_transformers.models.{kind}"} for kind, place in parts]
    for name, text in {
        "config.json": json.dumps(entries),
        "tokenizer.json": tokenizer,
        "modules.json": json.dumps(modules),
        "sentence_bert_config.json": json.dumps({"max_seq_length": 12}),
        "1_Pooling/config.json": json.dumps({"pooling_mode_mean_tokens": True}),
    }.items():
        (folder / name).write_text(text)
    tl.manual_seed(0)
    model = BertModel(BertConfig.from_entries(entries, "the test"))
    safetensors.save(model.state_dict(), folder / "model.safetensors")
    return folder
