"""tokenizers.normalizers: what changes a text before it is divided."""

from __future__ import annotations

from tallow.compat.packages.tokenizers.parts import REQUIRED, Part


class Normalizer(Part):
    """The base class."""


class BertNormalizer(Normalizer, clean_text=True, handle_chinese_chars=True, strip_accents=None, lowercase=True):
    """As BERT."""


class ByteLevel(Normalizer):
    """Bytes as letters."""


class Lowercase(Normalizer):
    """Lower case."""


class NFC(Normalizer):
    """Unicode's NFC."""


class NFD(Normalizer):
    """Unicode's NFD."""


class NFKC(Normalizer):
    """Unicode's NFKC."""


class NFKD(Normalizer):
    """Unicode's NFKD."""


class Nmt(Normalizer):
    """As SentencePiece's rules "nmt"."""


class Precompiled(Normalizer, precompiled_charsmap=REQUIRED):
    """A table of SentencePiece."""


class Prepend(Normalizer, prepend="▁"):
    """A text in front."""


class Replace(Normalizer, pattern=REQUIRED, content=REQUIRED):
    """A text for each match."""


class Sequence(Normalizer, normalizers=REQUIRED):
    """One after the other."""


class Strip(Normalizer, names={"left": "strip_left", "right": "strip_right"}, left=True, right=True):
    """Without white space at the ends."""


class StripAccents(Normalizer):
    """Without accents."""
