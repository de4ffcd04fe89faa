"""A small sentence encoder whose tokens are letters."""

from __future__ import annotations

from collections.abc import Sequence

import tallow as tl
from tallow.models.encoders import bert
from tallow.models.encoders.sentence import SentenceEncoder
from tallow.text.marks import Marks, PostProcessor, Text
from tallow.text.tokenizer import Tokenizer
from tallow.text.tokenizer_engines import Token


class Letters:
    """A tokenizer whose tokens are letters, between 1 and 2."""

    def encode(self, text: str) -> list[int]:
        return [3 + ord(letter) % 17 for letter in text]

    def split(self, text: str, special: bool) -> list[Token]:
        ids = [1, *self.encode(text), 2]
        ends = len(ids) - 1
        places = [(0, 0) if i in (0, ends) else (i - 1, i) for i in range(len(ids))]
        return [
            Token(token, text[start:end] or "[]", start, end, not start < end)
            for token, (start, end) in zip(ids, places, strict=True)
        ]

    def decode(self, ids: Sequence[int], special: bool) -> str:
        raise NotImplementedError

    def token_to_id(self, token: str) -> int | None:
        return {"[PAD]": 0}.get(token)


def small_encoder() -> SentenceEncoder:
    tl.manual_seed(0)
    sizes = {"vocab_size": 20, "hidden_size": 8, "num_hidden_layers": 2, "num_attention_heads": 2}
    config = bert.BertConfig(**sizes, intermediate_size=12, max_position_embeddings=12, initializer_range=0.5)
    marks = PostProcessor((Marks((1,), 0), Text(0, 0), Marks((2,), 0)))
    tokenizer = Tokenizer(Letters(), {"pad_token": "[PAD]"}, marks)
    return SentenceEncoder(tokenizer, bert.BertModel(config).eval(), max_length=10)
