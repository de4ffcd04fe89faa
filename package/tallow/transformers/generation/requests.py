"""The inputs of a call of `generate`, and the entries of its config that depend on them."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from inspect import signature
from typing import Any

import numpy as np
import numpy.typing as npt

from tallow.core.tensor import Tensor
from tallow.devices import to_host
from tallow.errors import ArgumentError, ShapeError, TallowWarning, warn
from tallow.transformers.generation.configuration_utils import DEFAULTS, GenerationConfig
from tallow.transformers.generation.logits_process import ids_of

Ids = npt.NDArray[np.int64]


@dataclass(kw_only=True)
class Request:
    """A call of `generate`.

    Attributes:
        config: with a value for every entry.
        ids: the tokens that the texts of the decoder begin with, (B, T), with padding.
        mask: 1 for text, 0 for padding, of `ids`, or of `embeds`; None means text.
        embeds: (B, S, D), what a decoder reads in the place of the prompt, or of its last tokens.
        source: what the encoder reads: ids (B, S) or features.
        source_name: the name of that argument of `forward`.
        source_mask: 1 for text, 0 for padding, of the source.
        cache: of the caller.
        others: further arguments of `forward`.
        end: the ids that end a text.
        pad: follows texts that have ended.
    """

    config: GenerationConfig
    ids: Ids
    mask: Ids | None = None
    embeds: Tensor | None = None
    source: Tensor | None = None
    source_name: str = "input_ids"
    source_mask: Tensor | None = None
    cache: Any = None
    others: dict[str, Any] = field(default_factory=dict)
    end: list[int] = field(default_factory=list)
    pad: int | None = None

    @property
    def batch(self) -> int:
        """B"""
        return len(self.ids)

    @property
    def padding(self) -> list[int] | None:
        """The number of padding tokens on the left of each row; None if there are none.

        Raises:  ArgumentError for padding in another place
        """
        if self.mask is None or self.mask.all():
            return None
        lengths = self.mask.astype(bool).sum(1)
        padding = self.mask.shape[1] - lengths
        if not all(row[first:].all() for row, first in zip(self.mask, padding, strict=True)):
            raise ArgumentError(
                "generate: an attention_mask with zeros after text", hint='tokenize with padding_side="left"'
            )
        return [int(count) for count in padding]

    @property
    def is_left_padded(self) -> bool:
        """True if there is no padding but on the left."""
        return self.mask is None or bool((np.diff(self.mask.astype(bool).astype(int)) >= 0).all())


def prepared_config(model: Any, config: GenerationConfig | None, kwargs: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """Return a config with a value for every entry, and the arguments that are no entries.

    An argument comes before `config`, that before the model's own config, and that before DEFAULTS.
    """
    if config is not None and not isinstance(config, GenerationConfig):
        raise ArgumentError(
            f"generation_config is a {type(config).__name__}", hint="pass GenerationConfig(**entries), or the entries"
        )
    merged = deepcopy(config) if config is not None else GenerationConfig()
    own = getattr(model, "generation_config", None) or GenerationConfig()
    merged.update(**_copied(own), defaults_only=True, allow_custom_entries=True)
    rest: dict[str, Any] = merged.update(**kwargs)
    has_length = merged.max_length is not None
    merged.update(**DEFAULTS, defaults_only=True)
    merged._has_default_length = not has_length
    if merged.cache_implementation == "hybrid":
        merged.cache_implementation = None  # of old files: the cache has sliding windows where the model has
    return merged, rest


def _copied(config: GenerationConfig) -> dict[str, Any]:
    return {name: deepcopy(value) for name, value in vars(config).items() if not name.startswith("_")}


def ends_of(tokens: Any) -> list[int]:
    """Return the ids that end a text: `eos_token_id`, of which negative ones end none.  Raises: ArgumentError"""
    if tokens is None:
        return []
    listed = np.ravel(tokens.tolist() if hasattr(tokens, "tolist") else tokens).tolist()
    kept = [token for token in listed if not isinstance(token, int) or token >= 0]
    if len(kept) < len(listed):
        warn(f"eos_token_id={tokens!r:.80}: negative ids end no text", TallowWarning)
    return ids_of(kept) if kept else []


def read_request(model: Any, inputs: Any, config: GenerationConfig, kwargs: dict[str, Any]) -> Request:
    """Return the inputs of a call.

    Raises:  ArgumentError for inputs that exclude each other, that are missing, or are too long; ShapeError
    """
    kwargs = {name: value for name, value in kwargs.items() if value is not None}
    end = ends_of(config.eos_token_id)
    pad = config.pad_token_id if config.pad_token_id is not None else (end[0] if end else None)
    cache = kwargs.pop("past_key_values", None)
    if isinstance(cache, tuple):
        raise ArgumentError("past_key_values is a tuple", hint="pass a DynamicCache(the tuple)")
    if cache is not None and config.cache_implementation is not None:
        raise ArgumentError("past_key_values and cache_implementation", hint="pass one of them")
    read = _read_source if model.config.is_encoder_decoder else _read_prompt
    request = read(model, inputs, config, kwargs)
    request.end, request.pad, request.cache = end, pad, cache
    if request.mask is None and not model.config.is_encoder_decoder and request.embeds is None:
        request.mask = _inferred_mask(request)
    set_lengths(model, request)
    return request


def _main_input(model: Any, inputs: Any, kwargs: dict[str, Any]) -> tuple[str, Any]:
    """Return the name and the value of the model's main input."""
    name = getattr(model, "main_input_name", "input_ids")
    named = kwargs.pop(name, None)
    if inputs is not None and named is not None:
        raise ArgumentError(f"generate: inputs and {name}", hint="pass one of them")
    return name, named if inputs is None else inputs


def _read_prompt(model: Any, inputs: Any, config: GenerationConfig, kwargs: dict[str, Any]) -> Request:
    _, ids = _main_input(model, inputs, kwargs)
    embeds, mask = kwargs.pop("inputs_embeds", None), kwargs.pop("attention_mask", None)
    if ids is None:
        count = 1 if embeds is None else embeds.shape[0]
        if embeds is None and config.bos_token_id is None:
            raise ArgumentError("generate: no input_ids, and no bos_token_id to begin with", hint="pass input_ids")
        ids = np.full((count, 0 if embeds is not None else 1), config.bos_token_id or 0)
    rows, seen = id_rows(ids), None if mask is None else id_rows(mask)
    length = rows.shape[1] + (0 if embeds is None else embeds.shape[1])
    if seen is not None and (len(seen) != len(rows) or (embeds is None and seen.shape[1] != length)):
        raise ShapeError(
            f"generate: attention_mask of shape {seen.shape} for ids of {rows.shape}", hint="pass one number a token"
        )
    if not length:
        raise ArgumentError("generate: a prompt without tokens", hint="pass at least one, such as bos_token_id")
    return Request(config=config, ids=rows, mask=seen, embeds=embeds, others=kwargs)


def _read_source(model: Any, inputs: Any, config: GenerationConfig, kwargs: dict[str, Any]) -> Request:
    name, source = _main_input(model, inputs, kwargs)
    if (embeds := kwargs.pop("inputs_embeds", None)) is not None:
        if source is not None:
            raise ArgumentError(f"generate: inputs_embeds and {name}", hint="pass one of them")
        name, source = "inputs_embeds", embeds
    encoded = kwargs.get("encoder_outputs")
    if source is None and encoded is None:
        raise ArgumentError(f"generate: no {name}", hint=f"pass {name}")
    batch = (encoded[0] if source is None else source).shape[0]  # type: ignore[index]  # one of them is given
    ids = _decoder_ids(model, config, kwargs, batch)
    mask = kwargs.pop("decoder_attention_mask", None)
    return Request(
        config=config,
        ids=ids,
        mask=None if mask is None else id_rows(mask),
        source=source,
        source_name=name,
        source_mask=kwargs.pop("attention_mask", None),
        others=kwargs,
    )


def _decoder_ids(model: Any, config: GenerationConfig, kwargs: dict[str, Any], batch: int) -> Ids:
    """Return what the decoder's texts begin with: its start token, and `decoder_input_ids`."""
    start = config.decoder_start_token_id if config.decoder_start_token_id is not None else config.bos_token_id
    given = kwargs.pop("decoder_input_ids", None)
    if start is None:
        start = getattr(model.config, "decoder_start_token_id", None)
    if start is None:
        if given is not None:
            return id_rows(given)
        raise ArgumentError("generate: no decoder_start_token_id", hint="pass decoder_start_token_id=")
    starts = np.broadcast_to(np.array(start, np.int64).reshape(-1, 1), (batch, 1))
    if given is None:
        return starts.copy()
    ids = id_rows(given)
    return ids if (ids[:, :1] == starts).any() else np.concatenate([starts, ids], 1)


def id_rows(ids: Any) -> Ids:
    """Return ids (B, T) as an array.  Raises: ShapeError for another number of dimensions"""
    rows = to_host(ids.array) if isinstance(ids, Tensor) else np.asarray(ids)
    if rows.ndim != 2 or not len(rows):
        raise ShapeError(
            f"generate: ids of shape {rows.shape}; expected (texts, tokens)", hint="pass at least one text"
        )
    if rows.dtype.kind not in "iub":
        raise ArgumentError(f"generate: ids of {rows.dtype}", hint="pass integers")
    return rows.astype(np.int64)


def _inferred_mask(request: Request) -> Ids | None:
    """Return the mask of prompts that hold the padding token, unless it also ends texts."""
    pad, ids = request.pad, request.ids
    if pad is None or pad in request.end or not (ids == pad).any():
        if pad is not None and request.batch > 1 and (ids[:, -1] == pad).any():
            _warn_of_right_padding()
        return None
    mask = (ids != pad).astype(np.int64)
    if (mask[:, -1] == 0).any():
        _warn_of_right_padding()
    return mask


def _warn_of_right_padding() -> None:
    warn('generate: prompts are padded on the right; a tokenizer with padding_side="left" is right', TallowWarning)


def set_lengths(model: Any, request: Request) -> None:
    """Set max_length, which counts the prompt, and min_length.

    Raises:  ArgumentError if the prompt is as long as max_length
    Warns:   TallowWarning where the length is transformers' default, the context is shorter, or lengths exclude each
             other
    """
    config, length = request.config, request.ids.shape[1]
    embedded = 0 if request.embeds is None else request.embeds.shape[1]
    if config.max_new_tokens is not None:
        if not config._has_default_length and config.max_length != config.max_new_tokens + length:
            warn("generate: max_new_tokens takes precedence over max_length", TallowWarning)
        config.max_length = config.max_new_tokens + length
    elif config._has_default_length:
        config.max_length = config.max_length + length
        if (limit := getattr(model.config, "max_position_embeddings", None)) is not None:
            config.max_length = min(config.max_length, limit)
        warn("generate: at most 20 new tokens, transformers' default; pass max_new_tokens", TallowWarning)
    elif length != embedded:
        config.max_length -= embedded
    if config.min_new_tokens is not None:
        config.min_length = config.min_new_tokens + length
    elif length != embedded:
        config.min_length = max(config.min_length - embedded, 0)
    if length >= config.max_length:
        raise ArgumentError(
            f"generate: the prompt takes {length} tokens, max_length is {config.max_length} and counts them",
            hint="pass max_new_tokens",
        )
    # The last token is never read, so it takes no position of the context.
    room = getattr(model, "context_length", config.max_length) + 1 - embedded
    if config.max_length > room > length:
        warn(f"generate: texts end at {room} tokens, where the model's context does", TallowWarning)
        config.max_length = room
    if config.min_length > config.max_length:
        warn(f"generate: min_length {config.min_length} is more than max_length {config.max_length}", TallowWarning)


def check_names(model: Any, names: Sequence[str]) -> None:
    """Raise ArgumentError for arguments that neither `generate` nor the model's `forward` has."""
    forward = set(signature(model.forward).parameters)
    own = {"input_ids", "attention_mask", "inputs_embeds", "past_key_values", "encoder_outputs", "token_type_ids"}
    own |= {"position_ids", "decoder_input_ids", "decoder_attention_mask", "logits_to_keep", "cache_position"}
    own.add(getattr(model, "main_input_name", "input_ids"))
    if unknown := [name for name in names if name not in forward | own]:
        raise ArgumentError(
            f"generate: {', '.join(unknown)}: neither an entry of GenerationConfig nor an argument of the model",
            hint="check the spelling",
        )
