"""The tokenizer of VITS: letters or phonemes, with a blank between them.

Source:  transformers 5.23, `VitsTokenizer`
"""

from __future__ import annotations

import re
import unicodedata
from typing import Any, ClassVar

from tallow.errors import UnsupportedError
from tallow.transformers.tokenization_letters import LetterTokenizer


class VitsTokenizer(LetterTokenizer):
    """The tokenizer of VITS: see `LetterTokenizer`.

    Args:
        vocab_file: the path of `vocab.json`.
        settings: `language`, of the texts; `add_blank`, whether the token of id 0 is around each letter; `normalize`,
            whether texts become lower case and letters that the model does not know are left out; `phonemize`, whether
            texts become phonemes, which needs the package phonemizer; `is_uroman`, whether other scripts become Latin
            letters, which needs the package uroman.

    Raises:  UnsupportedError where a text needs one of them
    """

    tokens: ClassVar = {"unk_token": "<unk>", "pad_token": "<pad>"}
    settings: ClassVar = {
        "language": None,
        "add_blank": True,
        "normalize": True,
        "phonemize": True,
        "is_uroman": False,
    }

    def _prepared(self, text: str) -> str:
        text = self.normalize_text(text) if self.normalize else text
        if self.language == "ron":
            text = text.replace("ț", "ţ")  # a comma below: the vocabulary has the cedilla
        if self.is_uroman and not is_latin(text):
            text = romanized(text)
        if self.phonemize:
            text = phonemes(text)
        elif self.normalize:
            text = "".join(letter for letter in text if letter in self._vocabulary).strip()
        if not self.add_blank or not text:
            return text
        blank = self._letters.get(0, "")
        return blank + "".join(letter + blank for letter in text)

    def normalize_text(self, text: str) -> str:
        """Return a text in lower case, but for tokens of the vocabulary that are not."""
        known = [re.escape(token) for token in (*self._vocabulary, *self.added_tokens_encoder) if token]
        return re.sub(f"({'|'.join(known)})|(.)", lambda m: m[1] or m[2].lower(), text, flags=re.DOTALL)

    def _decode(self, ids: Any, skips: bool, cleans_up: bool | None) -> str:
        tokens = [self._letters.get(int(i), "") for i in ([ids] if isinstance(ids, int) else ids)]
        tokens = [token for token in tokens if not (skips and token in self.all_special_tokens)]
        return "".join(tokens[1::2] if self.add_blank and len(tokens) > 1 else tokens)


def is_latin(text: str) -> bool:
    """Return whether all letters of a text are Latin ones, without marks."""
    return all(ord(each) < 128 or "LATIN" in unicodedata.name(each, "") for each in text if each.isalpha())


def romanized(text: str) -> str:
    """Return a text in Latin letters.  Raises: UnsupportedError"""
    try:
        import uroman  # optional: no extra has it
    except ImportError as error:
        raise UnsupportedError(f"{text!r:.80} is not in the model's script", hint="pip install uroman") from error
    return str(uroman.Uroman().romanize_string(text))


def phonemes(text: str) -> str:
    """Return the phonemes of an English text.  Raises: UnsupportedError"""
    try:
        import phonemizer  # optional: no extra has it
    except ImportError as error:
        raise UnsupportedError(
            "the model reads phonemes", hint="pip install phonemizer, and install espeak-ng"
        ) from error
    options = {"strip": True, "preserve_punctuation": True, "with_stress": True}
    return re.sub(r"\s+", " ", phonemizer.phonemize(text, language="en-us", backend="espeak", **options))
