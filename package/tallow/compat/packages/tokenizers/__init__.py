"""The package `tokenizers` where it is not installed, as in a browser: what transformers uses of it.

A tokenizer is the entries of a `tokenizer.json`; tallow's tokenizer encodes and decodes (`tallow.text`). Places of
tokens in the text, training, and steps alone (`normalize_str`) are not here; they raise by name.
"""

from tallow.compat.packages import VERSIONS
from tallow.compat.packages.tokenizers import decoders, models, normalizers, pre_tokenizers, processors, trainers
from tallow.compat.packages.tokenizers.encodings import Encoding
from tallow.compat.packages.tokenizers.parts import Regex, refused
from tallow.compat.packages.tokenizers.tokenizer import AddedToken, Tokenizer

__all__ = [
    "AddedToken",
    "Encoding",
    "NormalizedString",
    "PreTokenizedString",
    "Regex",
    "Tokenizer",
    "decoders",
    "models",
    "normalizers",
    "pre_tokenizers",
    "processors",
    "trainers",
]
__version__ = VERSIONS["tokenizers"]


class NormalizedString:
    """A text with its original, for steps written in Python: not here."""

    def __init__(self, sequence: str) -> None:
        raise refused("tokenizers.NormalizedString")


class PreTokenizedString:
    """A text in parts, for steps written in Python: not here."""

    def __init__(self, sequence: str) -> None:
        raise refused("tokenizers.PreTokenizedString")
