"""Tokenizers of letters, with a vocabulary in `vocab.json`, and that of models that write a letter for each frame.

Source:  transformers 5.23, `Wav2Vec2CTCTokenizer`
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any, ClassVar, Self

from tallow.errors import ArgumentError, TokenizerError
from tallow.io.atomic import atomic_write
from tallow.text.clean_up import clean_up
from tallow.text.tokenizer_classes import INPUTS
from tallow.text.tokenizer_files import read_object
from tallow.text.tokenizer_folder import TokenizerFiles, read_settings
from tallow.transformers.modeling_outputs import ModelOutput
from tallow.transformers.padding import Lengths
from tallow.transformers.tokenization import TokenizersBackend
from tallow.transformers.tokenization_files import Where, download_of, read_where, settings_of

VOCABULARY = "vocab.json"


class LetterTokenizer(TokenizersBackend):
    """The base of tokenizers whose tokens are letters; longer ones stay whole too.

    Args:
        vocab_file: the path of `vocab.json`.
        settings: entries of a `tokenizer_config.json`.
    """

    is_fast: ClassVar[bool] = False
    tokens: ClassVar[Mapping[str, str]]  # the special tokens, where a folder names no others
    settings: ClassVar[Mapping[str, Any]]  # the other settings of the class
    _vocabulary: Any
    _letters: dict[int, str]

    def __init__(self, vocab_file: str | Path, **settings: Any) -> None:
        config = {**self.tokens, **self.settings, "model_input_names": list(INPUTS), **settings}
        self._set_up(TokenizerFiles(Path(vocab_file), {}, config), config)

    @classmethod
    def from_pretrained(
        cls,
        pretrained_model_name_or_path: str | Path,
        *,
        revision: str | None = None,
        token: str | None = None,
        subfolder: str = "",
        gguf_file: str | None = None,
        **kwargs: Any,
    ) -> Self:
        """Load the tokenizer of a folder, with the arguments of `TokenizersBackend.from_pretrained`.

        Raises:  TokenizerError for malformed files; HubError
        """
        folder = read_where(
            pretrained_model_name_or_path, Where(revision, token, subfolder, gguf_file, download_of(kwargs))
        )
        given = settings_of(kwargs)
        config = {**cls.settings, **read_settings(folder, cls.tokens), **given}
        return cls._of_files(TokenizerFiles(folder / VOCABULARY, {}, config), given, str(pretrained_model_name_or_path))

    def _set_up(self, files: TokenizerFiles, given: Mapping[str, Any], name: str = "") -> None:
        super()._set_up(files, given, name)
        vars(self).update({each: files.config.get(each, value) for each, value in self.settings.items()})

    def _backend(self, files: TokenizerFiles) -> Any:
        vars(self)["_vocabulary"] = read_object(files.path)
        return self._made(self._vocabulary, files.config)

    def _made(self, vocabulary: Mapping[str, Any], config: Mapping[str, Any]) -> Any:
        """Return the object of the package `tokenizers` for the entries of `vocab.json`."""
        ids = self._letters_of(vocabulary, config)
        if not all(isinstance(token, str) and type(i) is int and i >= 0 for token, i in ids.items()):
            raise TokenizerError(f"{VOCABULARY} has entries that are no ids of tokens", hint="download it again")
        named = [token for name in self.tokens if isinstance(token := config.get(name), str)]
        for token in dict.fromkeys(named):
            ids.setdefault(token, max(ids.values(), default=-1) + 1)
        unknown = config.get("unk_token")
        longer = [token for token in ids if len(token) > 1 or token in named]
        flags = {"single_word": False, "normalized": False}
        added = [
            {"id": ids[t], "content": t, "special": t in named, "lstrip": t not in named, "rstrip": t not in named}
            | flags
            for t in longer
        ]
        model = {"type": "WordLevel", "vocab": ids, "unk_token": unknown if unknown in ids else next(iter(ids), "")}
        split = {"type": "Split", "pattern": {"Regex": r"[\s\S]"}, "behavior": "Isolated", "invert": False}
        steps = {"normalizer": self._normalizer(config), "pre_tokenizer": split, "decoder": {"type": "Fuse"}}
        entries: dict[str, Any] = {
            "version": "1.0",
            "truncation": None,
            "padding": None,
            "added_tokens": sorted(added, key=_id_of),
        }
        vars(self)["_letters"] = {i: token for token, i in ids.items()}
        entries |= {**steps, "post_processor": None, "model": model}
        return super()._backend(TokenizerFiles(Path(VOCABULARY), entries, {}))

    def _letters_of(self, vocabulary: Mapping[str, Any], config: Mapping[str, Any]) -> dict[str, Any]:
        """Return the ids of tokens, of the entries of `vocab.json`."""
        return dict(vocabulary)

    def _normalizer(self, config: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return the step that prepares texts."""
        return None

    def _prepared(self, text: str) -> str:
        """Return a text as it is split."""
        return text

    def _encode(self, text: Any, text_pair: Any, lengths: Lengths, **options: Any) -> Any:  # type: ignore[override]
        return super()._encode(self._each(text), self._each(text_pair), lengths, **options)

    def _each(self, text: Any) -> Any:
        if isinstance(text, list | tuple):
            return [self._each(each) for each in text]
        return self._prepared(text) if isinstance(text, str) else text

    def _config_to_save(self) -> dict[str, Any]:
        config = super()._config_to_save() | {"tokenizer_class": type(self).__name__}
        config.pop("backend", None)
        return config

    def _save_backend(self, folder: Path, prefix: str) -> tuple[str, ...]:
        return self.save_vocabulary(folder, prefix.removesuffix("-"))

    def save_vocabulary(self, save_directory: str | Path, filename_prefix: str | None = None) -> tuple[str, ...]:
        """Write `vocab.json`, and return its path."""
        path = Path(save_directory) / ((f"{filename_prefix}-" if filename_prefix else "") + VOCABULARY)
        with atomic_write(path) as file:
            file.write((json.dumps(self._vocabulary, indent=2, sort_keys=True, ensure_ascii=False) + "\n").encode())
        return (str(path),)


def _id_of(entry: Mapping[str, Any]) -> int:
    return int(entry["id"])


@dataclass
class Wav2Vec2CTCTokenizerOutput(ModelOutput):
    """A transcript, with the frames of its letters and words; of several, lists of these."""

    text: Any = None
    char_offsets: Any = None
    word_offsets: Any = None


class Wav2Vec2CTCTokenizer(LetterTokenizer):
    """The tokenizer of models that write a letter, or none, for each frame: see `LetterTokenizer`.

    Args:
        vocab_file: the path of `vocab.json`; for several languages, with a vocabulary for each.
        settings: `word_delimiter_token` is between words, as `replace_word_delimiter_char` in texts; `do_lower_case`
            says that the vocabulary is upper case and texts are lower case; `target_lang` chooses a language.

    Raises:  ArgumentError for an unknown language
    """

    tokens: ClassVar = {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>", "pad_token": "<pad>"}
    settings: ClassVar = {
        "word_delimiter_token": "|",
        "replace_word_delimiter_char": " ",
        "do_lower_case": False,
        "target_lang": None,
    }

    def _letters_of(self, vocabulary: Mapping[str, Any], config: Mapping[str, Any]) -> dict[str, Any]:
        language = config.get("target_lang")
        if language is None:
            return dict(vocabulary)
        if not isinstance(vocabulary.get(language), Mapping):
            known = ", ".join(key for key, value in vocabulary.items() if isinstance(value, Mapping))
            raise ArgumentError(
                f"target_lang={language!r:.80}", hint=f"the vocabulary has {known or 'one language'}"[:999]
            )
        return dict(vocabulary[language])

    def set_target_lang(self, target_lang: str) -> None:
        """Choose the language of a vocabulary for several.  Raises: ArgumentError for an unknown one"""
        config = self.init_kwargs | self.special_tokens_map | {"target_lang": target_lang}
        vars(self)["_tokenizer"] = self._made(self._vocabulary, config)
        vars(self)["target_lang"], self.init_kwargs["target_lang"] = target_lang, target_lang

    def _normalizer(self, config: Mapping[str, Any]) -> dict[str, Any] | None:
        return {"type": "Replace", "pattern": {"String": " "}, "content": config.get("word_delimiter_token") or "|"}

    def _prepared(self, text: str) -> str:
        return text.upper() if self.do_lower_case else text

    def _decode(
        self,
        ids: Any,
        skips: bool,
        cleans_up: bool | None,
        group_tokens: bool = True,
        spaces_between_special_tokens: bool = False,
        output_char_offsets: bool = False,
        output_word_offsets: bool = False,
    ) -> Any:
        """Return the transcript of the letters of frames.

        Args:
            group_tokens: a letter in frames next to each other is one.
            spaces_between_special_tokens: put spaces between letters.
            output_char_offsets, output_word_offsets: return the frames of letters and words too.
        """
        tokens = [self._letters.get(int(i), self.unk_token) for i in ([ids] if isinstance(ids, int) else ids)]
        if skips:
            left_out = {*self.all_special_tokens} - {self.word_delimiter_token}
            tokens = [token for token in tokens if token not in left_out]
        letters = self._found(tokens, group_tokens)
        text = (" " if spaces_between_special_tokens else "").join(each["char"] for each in letters).strip()
        text = text.lower() if self.do_lower_case else text
        text = clean_up(text) if (self.clean_up_tokenization_spaces if cleans_up is None else cleans_up) else text
        if not (output_char_offsets or output_word_offsets):
            return text
        words = self._get_word_offsets(letters, self.replace_word_delimiter_char) if output_word_offsets else None
        return Wav2Vec2CTCTokenizerOutput(text, letters if output_char_offsets else None, words)

    def _found(self, tokens: Sequence[str], grouped: bool) -> list[dict[str, Any]]:
        """Return the letters, each with its first frame and the one after its last."""
        found, frame = [], 0
        for token, frames in groupby(tokens) if grouped else ((token, (token,)) for token in tokens):
            start, frame = frame, frame + len(list(frames))
            if token != self.pad_token:
                letter = self.replace_word_delimiter_char if token == self.word_delimiter_token else token
                found.append({"char": letter, "start_offset": start, "end_offset": frame})
        return found

    @staticmethod
    def _get_word_offsets(offsets: Sequence[Mapping[str, Any]], word_delimiter_char: str = " ") -> list[dict[str, Any]]:
        """Return the words of letters, with their frames."""
        words = []
        for is_space, group in groupby(offsets, lambda each: each["char"] == word_delimiter_char):
            if not is_space:
                letters = list(group)
                word = "".join(each["char"] for each in letters)
                words.append(
                    {"word": word, "start_offset": letters[0]["start_offset"], "end_offset": letters[-1]["end_offset"]}
                )
        return words

    def batch_decode(
        self,
        sequences: Any,
        skip_special_tokens: bool = False,
        clean_up_tokenization_spaces: bool | None = None,
        **kwargs: Any,
    ) -> Any:
        """Return the texts of rows of ids, as `decode` does; with frames, an object with a list for each field."""
        found = [self.decode(row, skip_special_tokens, clean_up_tokenization_spaces, **kwargs) for row in sequences]
        if not any(isinstance(each, Mapping) for each in found):
            return found
        return Wav2Vec2CTCTokenizerOutput({name: [each[name] for each in found] for name in found[0]})

    @property
    def word_delimiter_token_id(self) -> Any:
        """The id of the token between words."""
        return self.convert_tokens_to_ids(self.word_delimiter_token)
