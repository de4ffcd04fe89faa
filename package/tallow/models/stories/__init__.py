"""The language model that comes with tallow: a Llama of half a million parameters that tells small stories.

tallow trained it: `scripts/train_stories.py`. README.md beside this file says on what, how, and how well it does.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tallow import dtypes
from tallow.models.llama import Llama
from tallow.text.llama2c import Llama2cTokenizer

FOLDER = Path(__file__).parent


def load(dtype: Any = None, device: Any = None) -> tuple[Llama, Llama2cTokenizer]:
    """The model and its tokenizer.

    Args:  dtype: float32 if None; the file holds float16, which is slower to compute with

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
