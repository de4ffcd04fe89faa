"""Choose how the logits of a call of `generate` are computed: by the fused decoder, or by the model's `forward`."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np

from tallow import devices
from tallow.core.tensor import Tensor, wrap
from tallow.devices import to_host
from tallow.dtypes import int8
from tallow.errors import ArgumentError, ShapeError, TallowWarning, warn
from tallow.models.causal_lm import CausalLM
from tallow.models.seq2seq.model import Seq2SeqLM
from tallow.transformers.cache_utils import Cache, DynamicCache, EncoderDecoderCache, StaticCache
from tallow.transformers.generation.configuration_utils import STATIC_CACHES, GenerationConfig
from tallow.transformers.generation.requests import Request
from tallow.transformers.generation.steps import CoreSteps, ForwardSteps, Steps

# Arguments of `forward` that do not change what the fused decoder computes.
NEUTRAL = ("logits_to_keep", "return_dict", "use_cache", "cache_position")


def is_fused(model: Any, request: Request, wanted: Collection[str]) -> bool:
    """Return whether the model's decoder can compute the texts without `forward`."""
    is_plain = set(wanted) <= {"scores", "logits"} and not set(request.others) - set(NEUTRAL) and request.embeds is None
    own_cache = request.cache is None or isinstance(request.cache, Cache)
    if isinstance(model, CausalLM):
        return is_plain and own_cache and request.is_left_padded
    if isinstance(model, Seq2SeqLM):
        source = request.source
        is_text = source is not None and source.ndim == 2 and not source.is_floating_point()
        return is_plain and request.cache is None and request.mask is None and is_text and _is_right_padded(request)
    return False


def _is_right_padded(request: Request) -> bool:
    if request.source_mask is None:
        return True
    steps = np.diff((to_host(request.source_mask.array) != 0).astype(int))
    return bool((steps <= 0).all())


def open_steps(model: Any, request: Request, copies: int, wanted: Collection[str]) -> tuple[Steps, list[list[int]]]:
    """Return the steps of a call, and the tokens to read first.

    These have a row for each text of the request, or for each of the `copies` of it.

    Raises:  ArgumentError for a cache that holds the prompt already, and one that the model cannot use
    """
    if not is_fused(model, request, wanted):
        return _forward_steps(model, request, copies, wanted)
    core, rows = model, request.ids.tolist()
    if isinstance(model, Seq2SeqLM):
        core = model.decoder_for(_sources(request))
    most = request.config.max_length - 1
    cache = _cache_for(request, most) if core is model else None
    steps = CoreSteps(core, request.batch, request.padding, most, cache, _options(request.config))
    known = 0 if cache is None else cache.get_seq_length()
    return steps, _unread(rows, known, request)


def _unread(rows: list[list[int]], known: int, request: Request) -> list[list[int]]:
    """Return the tokens that are not in the cache: all of the ids, or those after the ones that it has read."""
    length = len(rows[0])
    is_whole = request.mask is None or request.mask.shape[1] == length
    if not known or not is_whole:
        return rows
    if known >= length:
        raise ArgumentError(f"the cache has read {known} tokens, the ids are {length}", hint="pass the whole text")
    return [row[known:] for row in rows]


def _sources(request: Request) -> list[list[int]]:
    """Return the ids of each source without padding."""
    assert request.source is not None
    rows = to_host(request.source.array).tolist()
    if request.source_mask is None:
        return rows
    if request.source_mask.shape != request.source.shape:
        raise ShapeError(
            f"generate: attention_mask of shape {request.source_mask.shape} for sources of {request.source.shape}",
            hint="pass one number a token",
        )
    lengths = (to_host(request.source_mask.array) != 0).sum(1).tolist()
    return [row[:length] for row, length in zip(rows, lengths, strict=True)]


def _options(config: GenerationConfig) -> dict[str, Any]:
    return {"dtype": int8} if config.cache_implementation == "quantized" else {}


def _cache_for(request: Request, most: int) -> Cache | None:
    """Return the caller's cache, or the one that the config asks for; None means as the steps like it."""
    config = request.config
    if request.cache is not None:
        return request.cache
    if config.cache_implementation in STATIC_CACHES:
        return StaticCache(max_cache_len=max(most, config.max_cache_len or 0))
    if config.return_dict_in_generate:
        return DynamicCache()  # the caller may continue it
    if config.max_cache_len is not None:
        warn(f"generate: max_cache_len has no effect without cache_implementation={STATIC_CACHES[0]!r}", TallowWarning)
    return None


def _forward_steps(model: Any, request: Request, copies: int, wanted: Collection[str]) -> tuple[Steps, list[list[int]]]:
    inputs = {name: value for name, value in request.others.items() if name not in NEUTRAL}
    options: dict[str, Any] = {
        f"output_{kind}": True for kind in ("attentions", "hidden_states") if any(kind in name for name in wanted)
    }
    rows, cache, device = request.ids.tolist(), request.cache, model.device
    if model.config.is_encoder_decoder:
        if "encoder_outputs" not in inputs:
            read = {request.source_name: request.source, "attention_mask": request.source_mask}
            encoder = {name: value for name, value in read.items() if value is not None}
            inputs["encoder_outputs"] = model.get_encoder()(**encoder, **options, return_dict=True)
        inputs["attention_mask"] = request.source_mask
        inputs["decoder_attention_mask"] = _mask(request, device)
    else:
        inputs["attention_mask"] = _mask(request, device)
        if request.embeds is not None:
            inputs["inputs_embeds"], rows = request.embeds, [[] for _ in rows]
    if request.config.use_cache and cache is None:
        cache = DynamicCache()
        if model.config.is_encoder_decoder:
            cache = EncoderDecoderCache(cache, DynamicCache())
    elif cache is not None and rows[0]:
        rows = _unread(rows, cache.get_seq_length(), request)
    inputs = {name: _repeated(value, copies) for name, value in inputs.items() if value is not None}
    if cache is not None and copies > 1 and cache.get_seq_length():
        cache.batch_repeat_interleave(copies)
    first = [row for row in rows for _ in range(copies)]
    return ForwardSteps(model, inputs, cache, cache is not None, options), first


def _mask(request: Request, device: Any) -> Tensor | None:
    if request.mask is None or (request.mask.all() and request.embeds is None):
        return None
    return wrap(devices.move(request.mask, device))


def _repeated(value: Any, copies: int) -> Any:
    """Return Tensors, and those of results, with each row repeated."""
    if copies == 1:
        return value
    if isinstance(value, Tensor):
        return value.repeat_interleave(copies, 0)
    if hasattr(value, "to_tuple"):
        # Hidden states and attentions, which are tuples, stay as the encoder returned them, as in transformers.
        return type(value)(**{name: _repeated(each, copies) for name, each in value.items()})
    return value
