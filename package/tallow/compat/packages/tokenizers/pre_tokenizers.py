"""tokenizers.pre_tokenizers: what divides a text into words."""

from __future__ import annotations

from tallow.compat.packages.tokenizers.parts import REQUIRED, Part
from tallow.text.byte_letters import BYTES_OF_LETTERS


class PreTokenizer(Part):
    """The base class."""


class BertPreTokenizer(PreTokenizer):
    """As BERT: at white space and punctuation."""


class ByteLevel(PreTokenizer, add_prefix_space=True, trim_offsets=True, use_regex=True):
    """As GPT-2, bytes as letters."""

    @staticmethod
    def alphabet() -> list[str]:
        """Return the letters of the 256 bytes."""
        return list(BYTES_OF_LETTERS)


class CharDelimiterSplit(PreTokenizer, delimiter=REQUIRED):
    """At a character."""


class Digits(PreTokenizer, individual_digits=False):
    """At numbers, or at each digit."""


class FixedLength(PreTokenizer, length=5):
    """Pieces of a length."""


class Metaspace(PreTokenizer, replacement="▁", prepend_scheme="always", split=True):
    """As SentencePiece: spaces become a letter."""


class Punctuation(PreTokenizer, behavior="isolated"):
    """At punctuation."""


class Sequence(PreTokenizer, names={"pre_tokenizers": "pretokenizers"}, pre_tokenizers=REQUIRED):
    """One after the other."""


class Split(PreTokenizer, pattern=REQUIRED, behavior=REQUIRED, invert=False):
    """At matches."""


class UnicodeScripts(PreTokenizer):
    """At changes of the script."""


class Whitespace(PreTokenizer):
    """Words, and runs of punctuation."""


class WhitespaceSplit(PreTokenizer):
    """At white space."""
