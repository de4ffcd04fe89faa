"""`AutoTokenizer`, and the classes of tokenizers by name.

Source:  transformers 5.23, `models/auto/tokenization_auto.py`
"""

from __future__ import annotations

import importlib
from functools import cache
from pathlib import Path
from typing import Any

from tallow.errors import ArgumentTypeError
from tallow.lazy_names import missing
from tallow.models.architectures import SPEECH
from tallow.text.marian_engine import VOCABULARY, is_marian
from tallow.text.tokenizer_classes import CLASSES, class_name, known_name
from tallow.text.tokenizer_files import read_object
from tallow.text.tokenizer_folder import CONFIG, FILE, MODEL_CONFIG
from tallow.transformers.tokenization import PreTrainedTokenizerFast
from tallow.transformers.tokenization_files import Where, download_of, read_files, read_where, settings_of

# The modules of classes with methods of their own.
OWN = {
    "MarianTokenizer": "tallow.transformers.tokenization_marian",
    "VitsTokenizer": "tallow.transformers.tokenization_vits",
    "Wav2Vec2CTCTokenizer": "tallow.transformers.tokenization_letters",
    "WhisperTokenizer": "tallow.transformers.tokenization_whisper",
}
# Names of classes, and types of models, whose tokenizers are of letters.
LETTERS = dict.fromkeys(("Wav2Vec2CTCTokenizer", *SPEECH), "Wav2Vec2CTCTokenizer")
LETTERS |= dict.fromkeys(("VitsTokenizer", "vits"), "VitsTokenizer")


def tokenizer_class(name: str) -> type[PreTrainedTokenizerFast] | None:
    """Return the class of a name such as "BertTokenizer" or "LlamaTokenizerFast"; None for an unknown one.

    A name that transformers gives to several classes is one class here, as in transformers 5: "DPRReaderTokenizer" is
    BertTokenizer.
    """
    if name in ("", "PreTrainedTokenizerFast", "TokenizersBackend"):
        return PreTrainedTokenizerFast
    kind = known_name(name) or name.removesuffix("Fast")
    if kind in OWN:
        return getattr(importlib.import_module(OWN[kind]), kind)
    return _made(kind) if kind in CLASSES else None


def letter_tokenizer(folder: Path) -> Any:
    """Return the class of the tokenizer of letters that a folder names, or whose model has one; None without."""
    if not (folder / VOCABULARY).is_file():
        return None
    named = [
        read_object(folder / file).get(entry)
        for file, entry in ((CONFIG, "tokenizer_class"), (MODEL_CONFIG, "model_type"))
        if (folder / file).is_file()
    ]
    kind = next((LETTERS[name] for name in named if isinstance(name, str) and name in LETTERS), None)
    return None if kind is None else tokenizer_class(kind)


@cache
def _made(kind: str) -> type[PreTrainedTokenizerFast]:
    doc = f"The tokenizer {kind} of transformers: see `PreTrainedTokenizerFast`."
    own = CLASSES[kind]
    contents = {"kind": kind, "model_input_names": list(own.inputs), "padding_side": own.padding_side}
    return type(kind, (PreTrainedTokenizerFast,), {**contents, "__doc__": doc, "__module__": __name__})


class AutoTokenizer:
    """Loads the tokenizer of a folder or repository, of the class that its files name."""

    def __init__(self) -> None:
        raise ArgumentTypeError("AutoTokenizer has no objects", hint="call AutoTokenizer.from_pretrained(name)")

    @classmethod
    def from_pretrained(
        cls,
        pretrained_model_name_or_path: str | Path,
        *,
        revision: str | None = None,
        token: str | None = None,
        subfolder: str = "",
        gguf_file: str | None = None,
        tokenizer_type: str | None = None,
        **kwargs: Any,
    ) -> PreTrainedTokenizerFast:
        """Return the tokenizer of a folder, of a repository on the Hub, or of a file `tokenizer.json`.

        Args:
            tokenizer_type: the type of model whose tokenizer it is, such as "bert"; None means that of the files.

        The others are those of `PreTrainedTokenizerFast.from_pretrained`.

        Raises:  HubError if there is neither folder nor repository; TokenizerError for malformed files
        """
        where = Where(revision, token, subfolder, gguf_file, download_of(kwargs))
        path = (
            Path(pretrained_model_name_or_path).expanduser()
            if gguf_file
            else read_where(pretrained_model_name_or_path, where)
        )
        if path.is_dir() and is_marian(path) and not (path / FILE).exists():
            marian: Any = tokenizer_class("MarianTokenizer")
            return marian.from_pretrained(path, **kwargs)
        if path.is_dir() and not (path / FILE).exists() and (letters := letter_tokenizer(path)) is not None:
            return letters.from_pretrained(path, **kwargs)
        settings = settings_of(kwargs)
        kind = None if tokenizer_type is None else class_name(None, tokenizer_type, has_bytes=False)
        files = read_files(pretrained_model_name_or_path, settings, kind, where)
        made = tokenizer_class(files.name) or PreTrainedTokenizerFast
        return made._of_files(files, settings, str(pretrained_model_name_or_path))


def __getattr__(name: str) -> Any:
    """Return the class of a name: `from tallow.transformers.auto_tokenizer import BertTokenizer`."""
    found = tokenizer_class(name) if name.endswith(("Tokenizer", "TokenizerFast")) else None
    if found is None:
        raise missing(__package__ or __name__, name)
    return found
