"""Train the vocabulary of a tokenizer like another one.

Source:  transformers 5.23, `TokenizersBackend.train_new_from_iterator`
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Self

from tallow.errors import ArgumentError
from tallow.text.tokenizer_folder import FLAGS
from tallow.transformers.special_tokens import EXTRA
from tallow.transformers.tokenization_files import FileMethods, library

KINDS = ("BPE", "Unigram", "WordLevel", "WordPiece")
ENDS = ("continuing_subword_prefix", "end_of_word_suffix")


class TrainingMethods(FileMethods):
    """The method of a tokenizer that trains another one."""

    def train_new_from_iterator(
        self,
        text_iterator: Iterable[Any],
        vocab_size: int,
        length: int | None = None,
        new_special_tokens: Sequence[Any] | None = None,
        special_tokens_map: Mapping[str, str] | None = None,
        **kwargs: Any,
    ) -> Self:
        """Return a tokenizer with the steps and special tokens of this one, whose vocabulary is trained on texts.

        Args:
            text_iterator: texts, or lists of texts.
            vocab_size: the number of tokens.
            length: the number of texts, for the progress bar.
            new_special_tokens: further special tokens.
            special_tokens_map: new names of special tokens.
            kwargs: further arguments of the trainer of the package `tokenizers`, such as min_frequency.

        Raises:  ArgumentError for vocabularies of another kind; UnsupportedError where the package is not installed
        """
        renamed = dict(special_tokens_map or {})
        entries = json.loads(self._tokenizer.to_str())
        added, marks = entries.pop("added_tokens"), entries.pop("post_processor")
        model = entries["model"]
        if model["type"] not in KINDS:
            raise ArgumentError(f"training a vocabulary of type {model['type']!r:.80}", hint=f"trained are {KINDS}")
        unknown = _empty(model, renamed)
        options = kwargs | _options(entries, kwargs) | ({"unk_token": unknown} if unknown is not None else {})
        special = [_renamed(token, renamed) for token in added if token["special"] or model["type"] == "Unigram"]
        package = library()
        tokens = [package.AddedToken(**token) for token in special] + list(new_special_tokens or ())
        trainer_of = getattr(package.trainers, f"{model['type'].replace('BPE', 'Bpe')}Trainer")
        trainer = trainer_of(vocab_size=vocab_size, special_tokens=tokens, **options)
        trained = package.Tokenizer.from_str(json.dumps({**entries, "added_tokens": [], "post_processor": None}))
        trained.train_from_iterator(text_iterator, trainer=trainer, length=length)
        if marks is not None:
            text = json.dumps(json.loads(trained.to_str()) | {"post_processor": _marks(marks, renamed, trained)})
            trained = package.Tokenizer.from_str(text)
        settings = {name: value for name, value in self.init_kwargs.items() if not name.endswith("_token")}
        settings |= {name: renamed.get(token, token) for name, token in self.special_tokens_map.items()}
        settings[EXTRA] = [*self.extra_special_tokens, *map(str, new_special_tokens or ())]
        return type(self)(tokenizer_object=trained, **settings)


def _empty(model: dict[str, Any], renamed: Mapping[str, str]) -> str | None:
    """Remove the vocabulary of a model, in place; return its unknown token, of Unigram."""
    if "unk_token" in model:
        model["unk_token"] = renamed.get(model["unk_token"], model["unk_token"])
    if model["type"] != "Unigram":
        model["vocab"] = {}
        if "merges" in model:
            model["merges"] = []
        return None
    if model["unk_id"] is None:
        return None
    unknown = model["vocab"][model["unk_id"]][0]
    unknown = renamed.get(unknown, unknown)
    model |= {"unk_id": 0, "vocab": [[unknown, 0.0]]}
    return unknown


def _options(entries: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the trainer's arguments that follow from the steps."""
    model, options = entries["model"], {}
    if model["type"] == "BPE":
        options = {name: model[name] for name in ENDS if name not in given and model[name] is not None}
    step = entries["pre_tokenizer"] or {}
    if any(each["type"] == "ByteLevel" for each in (step, *step.get("pretokenizers", ())) if each):
        options["initial_alphabet"] = library().pre_tokenizers.ByteLevel.alphabet()
    return options


def _renamed(token: Mapping[str, Any], renamed: Mapping[str, str]) -> dict[str, Any]:
    """Return the arguments of an added token, which is not special for the trainer."""
    flags = {name: token[name] for name in FLAGS if name != "special"}
    return {"content": renamed.get(token["content"], token["content"])} | flags


def _marks(step: dict[str, Any], renamed: Mapping[str, str], trained: Any) -> dict[str, Any]:
    """Return a post-processor with the ids of a vocabulary.  Raises: ArgumentError if that lacks a token"""

    def id_of(token: str) -> int:
        id = trained.token_to_id(token)
        if id is None:
            raise ArgumentError(f"the new vocabulary lacks {token!r:.80}, which begins or ends texts")
        return id

    for entry in step.get("special_tokens", {}).values():
        entry["tokens"] = [renamed.get(token, token) for token in entry["tokens"]]
        entry["ids"] = [id_of(token) for token in entry["tokens"]]
    for name in ("cls", "sep"):
        if name in step:
            token = renamed.get(step[name][0], step[name][0])
            step[name] = [token, id_of(token)]
    return step
