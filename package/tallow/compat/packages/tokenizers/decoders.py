"""tokenizers.decoders: what joins tokens to a text."""

from __future__ import annotations

from collections.abc import Sequence as Items
from typing import Any

from tallow.compat.packages.tokenizers.parts import REQUIRED, Part, refused, tokenizer_json
from tallow.text.tokenizer_engines import engine_of


class Decoder(Part):
    """The base class."""

    def decode(self, tokens: Items[str]) -> str:
        """Return the text of tokens, by a tokenizer whose words they are."""
        vocab = {token: number for number, token in enumerate(dict.fromkeys(tokens))}
        model = {"type": "WordLevel", "vocab": {**vocab, "": len(vocab)}, "unk_token": ""}
        text = engine_of(tokenizer_json(model=model, decoder=self.entries), "a decoder")
        return text.decode([vocab[token] for token in tokens], special=True)


class BPEDecoder(Decoder, suffix="</w>"):
    """Of BPE with a suffix at the end of words."""


class ByteFallback(Decoder):
    """Of tokens such as <0x61>."""


class ByteLevel(Decoder, add_prefix_space=True, trim_offsets=True, use_regex=True):
    """Of bytes as letters."""


class CTC(Decoder, pad_token="<pad>", word_delimiter_token="|", cleanup=True):
    """Of CTC: without repetitions and blanks."""


class Fuse(Decoder):
    """All tokens in one."""


class Metaspace(Decoder, replacement="▁", prepend_scheme="always", split=True):
    """Of SentencePiece."""


class Replace(Decoder, pattern=REQUIRED, content=REQUIRED):
    """A text for each match."""


class Sequence(Decoder, decoders=REQUIRED):
    """One after the other."""


class Strip(Decoder, names={"left": "start", "right": "stop"}, content=" ", left=0, right=0):
    """Without some characters at the ends."""


class WordPiece(Decoder, prefix="##", cleanup=True):
    """Of WordPiece."""


class DecodeStream:
    """Text as ids come: not here."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise refused("tokenizers.decoders.DecodeStream")
