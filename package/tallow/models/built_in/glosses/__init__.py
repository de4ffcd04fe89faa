"""The built-in sentence encoder: a table of word vectors that knows what a dictionary says of English words.

It was trained with tallow, by `scripts/train_glosses.py`. README.md in this folder describes its data, training and
quality; LICENSE-WORDNET is the licence of the data.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tallow.models.encoders.sentence import SentenceEncoder

FOLDER = Path(__file__).parent
KNOWS = "English words as WordNet explains them, without word order"


def load(dtype: Any = None, device: Any = None) -> SentenceEncoder:
    """Return the encoder, with its tokenizer; natively it needs the extra `text`.

    Args:  dtype: None means float32; the file holds int8

    Raises:  MissingPackageError without the package `tokenizers`

    Example:
        encoder = glosses.load()
        vectors = encoder.encode(["A kitten naps.", "a young cat that is asleep"], normalize=True)
    """
    return SentenceEncoder.from_pretrained(FOLDER, dtype, device)
