"""The built-in language model: a Llama of half a million parameters that tells short stories.

It was trained with tallow, by `scripts/train_stories.py`. README.md in this folder describes its data, training and
quality.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tallow import dtypes
from tallow.models.decoders.llama import Llama
from tallow.text.llama2c import Llama2cTokenizer

FOLDER = Path(__file__).parent


def load(dtype: Any = None, device: Any = None) -> tuple[Llama, Llama2cTokenizer]:
    """Return the model and its tokenizer, which is the model's `tokenizer`, too.

    Args:  dtype: None means float32; the file holds float16, which is slower to compute with

    Example:
        >>> from tallow.models import stories
        >>> model, tokenizer = stories.load()
        >>> "".join(model.generate_text("Once upon a", max_tokens=1))
        ' time'
    """
    model = Llama.from_pretrained(FOLDER, dtype=dtypes.float32 if dtype is None else dtype, device=device)
    model.tokenizer = tokenizer = Llama2cTokenizer.load(FOLDER / "tokenizer.bin", vocab_size=model.vocab_size)
    return model, tokenizer
