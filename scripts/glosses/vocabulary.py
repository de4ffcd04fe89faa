"""The vocabulary: WordPiece in lower case, as BERT's, trained by the package `tokenizers`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tallow.errors import MissingPackageError

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
ALPHABET = 100  # single characters


def train(texts: Iterable[str], vocab_size: int) -> Any:
    """Train a `tokenizers.Tokenizer` with `vocab_size` pieces. It adds no special tokens to a text."""
    try:
        from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
    except ImportError as error:
        raise MissingPackageError("tokenizers", "learning a vocabulary", "train") from error

    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    trainer = trainers.WordPieceTrainer(
        vocab_size=vocab_size, limit_alphabet=ALPHABET, special_tokens=list(SPECIAL), show_progress=False
    )
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer
