"""The built-in language model: a Llama of half a million parameters that tells short stories.

It was trained with tallow, by `scripts/train_stories.py`. README.md in this folder describes its data, training and
quality.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tallow import dtypes
from tallow.models.llama import Llama
from tallow.text.llama2c import Llama2cTokenizer

FOLDER = Path(__file__).parent


def load(dtype: Any = None, device: Any = None) -> tuple[Llama, Llama2cTokenizer]:
    """Return the model and its tokenizer.

    Args:  dtype: None means float32; the file holds float16, which is slower to compute with

    Example:
        >>> from tallow.generation import decode_stream, generate
        >>> from tallow.models import stories
        >>> model, tokenizer = stories.load()
        >>> prompt = tokenizer.encode("Once upon a time")
        >>> tokens = [*prompt, *generate(model, prompt, max_tokens=3)]
        >>> "".join(decode_stream(tokenizer, tokens[1:], previous=tokens[0]))[:16]
        'Once upon a time'
    """
    model = Llama.from_pretrained(FOLDER, dtype=dtypes.float32 if dtype is None else dtype, device=device)
    return model, Llama2cTokenizer.load(FOLDER / "tokenizer.bin", vocab_size=model.vocab_size)
