"""The settings of a ColBERT's folder, in four forms: of the original code (`artifact.metadata`), of PyLate, of
sentence-transformers' MultiVectorEncoder, and of BGE-M3 (`colbert_linear.pt`).
"""

from __future__ import annotations

import string
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tallow.core.tensor import Tensor
from tallow.errors import CheckpointError
from tallow.io import pytorch
from tallow.models.config import CONFIG, read_entries
from tallow.models.encoders.bert import BertModel
from tallow.models.encoders.sentence_folder import (
    MODULES,
    PROMPTS,
    modules_of,
    prompts_of,
    text_config,
    transformer_class,
    transformer_settings,
)
from tallow.models.encoders.sentence_parts import Dense, Loader
from tallow.models.pretrained import PretrainedModel
from tallow.nn.linear import Identity, Linear
from tallow.nn.module import Module
from tallow.nn.parameter import Parameter
from tallow.text.marks import Encoded
from tallow.text.tokenizer import Tokenizer

ORIGINAL, METADATA = "HF_ColBERT", "artifact.metadata"
BGE, FIRST = "colbert_linear.pt", "<s>"  # BGE-M3, and the token of its texts that has no vector
TOKENS = "token_embeddings"  # the vectors of tokens, in sentence-transformers
MARKERS = {"query": "[unused0]", "document": "[unused1]"}  # of the original code
LENGTH = 32  # of queries, where a folder names none
LEAST, MOST = 3, 1 << 16  # tokens of a text with the special ones, and of one for a model without a limit
OLDER = {"query": "query_prefix", "document": "document_prefix"}  # of PyLate


@dataclass(frozen=True)
class Expansion:
    """Tokens at the end of queries, whose vectors count.

    Attributes:
        token: their id.
        length: of a query with them.
        attend: other tokens see them.
    """

    token: int
    length: int
    attend: bool

    def expand(self, row: Encoded) -> Encoded:
        """Return the tokens of a query with those at its end."""
        more = max(0, self.length - len(row.ids))
        return Encoded([*row.ids, *[self.token] * more], [*row.segments, *[0] * more])


@dataclass(frozen=True)
class Side:
    """The encoding of queries, or of documents.

    Attributes:
        prompt: what to write before a text.
        marker: the id of a token before it; None for none.
        first: the number of special tokens before the marker.
        length: the most tokens; None means as the model.
        skipped: the ids of tokens without vectors.
        expansion: of queries; None for none.
    """

    prompt: str = ""
    marker: int | None = None
    first: int = 0
    length: int | None = None
    skipped: Sequence[int] = ()
    expansion: Expansion | None = None


@dataclass(frozen=True)
class Settings:
    """The settings in a form that all folders have.

    Attributes:
        prompts, lengths: by side.
        markers: tokens before texts, by side, where they are no part of the prompts.
        expansion: entries of sentence-transformers' `query_expansion`; None for none.
        skipped: words whose tokens have no vectors.
        skipped_sides: the sides for which they have none.
    """

    prompts: Mapping[str, str]
    markers: Mapping[str, str]
    lengths: Mapping[str, int | None]
    expansion: Mapping[str, Any] | None
    skipped: Sequence[str]
    skipped_sides: Sequence[str] = ("document",)


@dataclass(frozen=True)
class Files:
    """The contents of a folder.

    Attributes:
        place: the folder of the encoder.
        kind: its class.
        is_original: the projection is in the encoder's file.
        parts: the modules after the encoder.
        texts: the limit of a text and its case.
    """

    place: Path
    kind: type[PretrainedModel]
    is_original: bool
    parts: Sequence[Module]
    texts: Mapping[str, Any]
    settings: Settings

    def heads(self, projection: Tensor | None) -> list[Module]:
        """Return the modules for the vector of each token.  Raises: CheckpointError without any"""
        if projection is not None:
            out, wide = projection.shape
            linear = Linear(wide, out, bias=False, device="meta")
            linear.weight = Parameter(projection)
            return [linear]
        if not self.parts:
            raise CheckpointError(f"{self.place} has no projection of tokens", hint="load it as a SentenceEncoder")
        return list(self.parts)

    def sides(self, tokenizer: Tokenizer, positions: int | None) -> dict[str, Side]:
        """Return how both sides are encoded.

        Args:    positions: the most tokens that the model reads; None for no limit
        Raises:  CheckpointError for a token that the tokenizer does not have, and for lengths that are none
        """
        settings = self.settings
        ids = [tokenizer.token_to_id(word) for word in settings.skipped]
        skipped = [token for token in ids if token is not None]
        tokens = tokenizer.split("a")
        first = next((i for i, token in enumerate(tokens) if not token.is_special), 0)
        sides = {}
        for name in MARKERS:
            prompt, marker = settings.prompts.get(name, ""), settings.markers.get(name, "")
            token = next(
                (i for form in (marker, marker.strip()) if (i := tokenizer.token_to_id(form)) is not None), None
            )
            if token is None:  # a prefix that is no token is a text
                prompt, token = marker + prompt, None
            sides[name] = Side(
                prompt,
                token,
                first,
                self._length(name, positions),
                skipped if name in settings.skipped_sides else (),
                self._expansion(tokenizer, positions) if name == "query" else None,
            )
        expansion = sides["query"].expansion
        if expansion is not None and (settings.expansion or {})["strategy"] == "fixed":
            sides["query"] = replace(sides["query"], length=expansion.length)
        return sides

    def _length(self, side: str, positions: int | None) -> int | None:
        length = self.settings.lengths.get(side)
        if length is not None and (type(length) is not int or length < LEAST):
            raise CheckpointError(
                f"{self.place}: the length of a {side} is {length!r:.80}", hint=f"expected {LEAST} up"
            )
        return min((each for each in (length, positions) if length and each), default=None)

    def _expansion(self, tokenizer: Tokenizer, positions: int | None) -> Expansion | None:
        entries = self.settings.expansion
        if entries is None:
            return None
        named, length = entries.get("token"), entries.get("length")
        fallback = tokenizer.eos_token_id if tokenizer.mask_token_id is None else tokenizer.mask_token_id
        token = fallback if named is None else tokenizer.token_to_id(str(named))
        strategies = ("fixed", "min")
        is_length = type(length) is int and LEAST <= length <= (positions or MOST)
        if token is None or length is None or not is_length or entries.get("strategy") not in strategies:
            raise CheckpointError(
                f"{self.place}: query_expansion is {dict(entries)!r:.200}",
                hint="expected a strategy, fixed or min, a length that the model reads and a token of the tokenizer",
            )
        return Expansion(token, length, entries.get("attend") is True)


def read_folder(folder: Path, load: Loader) -> Files:
    """Return what a folder holds.  Raises: CheckpointError for modules that tallow does not have"""
    config = read_entries(folder / CONFIG) if (folder / CONFIG).exists() else {}
    if ORIGINAL in (config.get("architectures") or ()):
        path = folder / METADATA
        _, texts = text_config(folder)
        settings = _original_settings(read_entries(path) if path.exists() else {})
        return Files(folder, BertModel, True, (), texts, settings)
    if (folder / BGE).exists():
        _, texts = text_config(folder)
        settings = Settings({}, {}, {}, None, [FIRST], [*MARKERS])
        return Files(folder, transformer_class(folder), False, [read_linear(folder / BGE)], texts, settings)
    modules = list(modules_of(folder))
    if not modules or modules[0][0] != "Transformer":
        raise CheckpointError(
            f"{folder} is no folder of a ColBERT", hint=f"expected {MODULES} with a Transformer, or {ORIGINAL}"
        )
    (_, place), *rest = modules
    texts, saved = transformer_settings(place), read_entries(folder / PROMPTS) if (folder / PROMPTS).exists() else {}
    masks = [read_entries(path / CONFIG) for kind, path in rest if kind == "MultiVectorMask"]
    unknown = [kind for kind, _ in rest if kind not in ("Dense", "MultiVectorMask", "Normalize")]
    if unknown:
        raise CheckpointError(
            f"{folder}: a module of kind {unknown[0]!r:.80} does not give vectors of tokens",
            hint="load it as a SentenceEncoder",
        )
    names = dict.fromkeys(("module_input_name", "module_output_name"), TOKENS)
    parts = [Dense.from_pretrained(path, load, names) for kind, path in rest if kind == "Dense"]
    settings = _settings(texts, saved, masks, prompts_of(folder)["prompts"])
    # A model may give the vectors without a projection.
    return Files(place, transformer_class(place), False, parts or [Identity()], texts, settings)


def read_linear(path: Path) -> Linear:
    """Return the linear layer of a file of PyTorch.  Raises: CheckpointError for a file with something else"""
    tensors = pytorch.load(path)
    weight = tensors.get("weight") if isinstance(tensors, dict) else None
    if not isinstance(weight, Tensor) or weight.ndim != 2:
        raise CheckpointError(f"{path} has no weight of a linear layer", hint="download it again")
    layer = Linear(weight.shape[1], weight.shape[0], bias="bias" in tensors, device="meta")
    layer.load_state_dict(tensors, assign=True, source=str(path))
    return layer


def _original_settings(metadata: Mapping[str, Any]) -> Settings:
    names = {"query": "query_token_id", "document": "doc_token_id"}
    markers = {side: str(metadata.get(name) or MARKERS[side]) for side, name in names.items()}
    length = metadata.get("query_maxlen") or LENGTH
    expansion = {"strategy": "fixed", "length": length, "attend": bool(metadata.get("attend_to_mask_tokens"))}
    skipped = string.punctuation if metadata.get("mask_punctuation", True) else ""
    return Settings({}, markers, {"document": metadata.get("doc_maxlen")}, expansion, [*skipped])


def _settings(
    texts: Mapping[str, Any], saved: Mapping[str, Any], masks: Sequence[Mapping[str, Any]], prompts: Mapping[str, str]
) -> Settings:
    """Return the settings of PyLate and of sentence-transformers.

    Args:
        texts: the settings of the encoder.
        saved: of the folder.
        masks: of the modules that say which tokens count.
    """
    both = {**saved, **texts}
    markers = {side: str(saved.get(name) or "") for side, name in OLDER.items()}
    prompts = {side: prompts.get(side, "").removeprefix(markers[side]) for side in OLDER}
    older = ("do_query_expansion", "attend_to_expansion_tokens", "skiplist_words", "query_length", *OLDER.values())
    expansion = both.get("query_expansion")
    if "query_expansion" not in both and any(name in saved for name in older):
        attend = bool(saved.get("attend_to_expansion_tokens", saved.get("attend_to_mask_tokens")))
        entries = {"strategy": "fixed", "length": both.get("query_length") or LENGTH, "attend": attend}
        expansion = None if saved.get("do_query_expansion") is False else entries
    mask = masks[0] if masks else {}
    skipped = mask.get("skiplist_words") if masks else saved.get("skiplist_words", [*string.punctuation])
    if mask.get("keep_only_token_ids"):
        raise CheckpointError("keep_only_token_ids, of encoders of images, is not supported")
    lengths = {side: both.get(f"{side}_length") for side in OLDER}
    sides = mask.get("skiplist_tasks") or ("document",)
    return Settings(prompts, markers, lengths, expansion, list(skipped or ()), sides)
