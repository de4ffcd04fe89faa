"""Whisper's decoder, one step at a time.

Letters: A sounds, B rows, T positions, D width, V vocabulary; the rows of one sound, its beams or samples, stand after
each other.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tallow import devices, dtypes, kernels
from tallow.dtypes import Array
from tallow.kernels.cross_decode_block import Affine, CrossDecodeBlock
from tallow.models.causal_lm import to_host
from tallow.models.whisper.model import (
    Heard,
    Whisper,
    WhisperCrossAttention,
    WhisperDecoder,
    WhisperDecoderLayer,
    WhisperSelfAttention,
)
from tallow.models.whisper.search import Floats, Rows
from tallow.nn.cache import KVCache
from tallow.nn.container import ModuleList
from tallow.nn.dropout import Dropout
from tallow.nn.embedding import Embedding
from tallow.nn.linear import Linear
from tallow.nn.normalization import LayerNorm
from tallow.tensor import Tensor, wrap


class Steps:
    """The decoder, with what it keeps of the texts of some sounds.

    Args:  audio_ASD: encoded sounds
    """

    def __init__(self, model: Whisper, audio_ASD: Tensor) -> None:
        self._model = model
        self._heard: Heard = model.decoder.listen(audio_ASD)
        self._cache: KVCache = model.new_cache(audio_ASD.shape[0])
        self._short = ShortWay(model, self._heard) if is_plain(model) else None

    def start(self, rows: Rows, places: Sequence[int]) -> Floats:
        """Read what the texts start with; the logits of what follows those `places` in them, (A, len(places), V)."""
        hidden_ATD = self._read(rows)
        return to_host(self._model.logits(hidden_ATD[:, list(places)]).array)

    def fan_out(self, group: int) -> None:
        """Go on with so many rows for each sound."""
        self._cache.select([row for row in range(self._cache.batch) for _ in range(group)])

    def go_on(self, rows: Rows) -> Floats:
        """Logits (B, V) of what follows each row's last token."""
        if self._short is not None:
            return self._short.logits([row[-1] for row in rows], self._cache)
        return to_host(self._model.logits(self._read([row[-1:] for row in rows])[:, -1]).array)

    def select(self, sources: Sequence[int]) -> None:
        self._cache.select(sources)

    def _read(self, rows: Rows) -> Tensor:
        device = self._model.decoder.embed_tokens.weight.device
        tokens = wrap(devices.move(np.array(rows, np.int64), device))
        return self._model.decoder(tokens, self._heard, self._cache)


class ShortWay:
    """One token of each row through all layers by the "cross_decode_block" kernel: a call per layer in place of forty.

    It reads the arrays that the parameters have when it is made.
    """

    def __init__(self, model: Whisper, heard: Heard) -> None:
        decoder = model.decoder
        self._tokens, self._positions = decoder.embed_tokens.weight.array, decoder.embed_positions.weight.array
        self._head = model.head_weight.array
        self._norm, self._eps = _norm(decoder.layer_norm), decoder.layer_norm.eps
        self._blocks = [_block(layer) for layer in decoder.layers]
        self._cross = [tuple(dtypes.widen(each.array) for each in layer) for layer in heard.layers]

    def logits(self, tokens: Sequence[int], cache: KVCache) -> Floats:
        """Append a token to each row; (B, V) of what follows."""
        cache.reserve(1)
        x_BD = dtypes.widen(self._tokens[list(tokens)]) + dtypes.widen(self._positions[cache.length])
        for block, room, cross in zip(self._blocks, cache.layers, self._cross, strict=True):
            x_BD = kernels.run("cross_decode_block", x_BD, block, room.keys, room.values, *cross, cache.length)
        cache.advance(1)
        hidden_BD = kernels.run("layer_norm", x_BD, *self._norm, self._eps)
        logits_BV: Floats = kernels.run("linear", hidden_BD, self._head, None)
        return logits_BV


def _block(layer: WhisperDecoderLayer) -> CrossDecodeBlock:
    own, cross = layer.self_attn, layer.encoder_attn
    return CrossDecodeBlock(
        self_norm=_norm(layer.self_attn_layer_norm),
        query=_matrix(own.q_proj),
        key=_matrix(own.k_proj),
        value=_matrix(own.v_proj),
        output=_matrix(own.out_proj),
        cross_norm=_norm(layer.encoder_attn_layer_norm),
        cross_query=_matrix(cross.q_proj),
        cross_output=_matrix(cross.out_proj),
        mlp_norm=_norm(layer.final_layer_norm),
        up=_matrix(layer.fc1),
        down=_matrix(layer.fc2),
        heads=own.num_heads,
        eps=layer.final_layer_norm.eps,
    )


def _matrix(linear: Linear) -> Affine:
    return Affine(linear.weight.array, _widened(linear.bias))


def _norm(norm: LayerNorm) -> Affine:
    assert norm.weight is not None
    return Affine(dtypes.widen(norm.weight.array), _widened(norm.bias))


def _widened(bias: Tensor | None) -> Array | None:
    return None if bias is None else dtypes.widen(bias.array)


def is_plain(model: Whisper) -> bool:
    """Whether the decoder computes what the kernel does, on a CPU: no hooks, replaced layers, dropout, other
    activations, nor dtypes that it does not take."""
    decoder, config = model.decoder, model.config
    modules = list(decoder.modules())
    if any(type(module) not in PLAIN or module.has_hooks() for module in modules):
        return False
    if config.activation_function != "gelu":
        return False
    if decoder.training and (config.dropout or config.attention_dropout or config.activation_dropout):
        return False
    parameters = list(decoder.parameters())
    used = {parameter.dtype for parameter in parameters}
    on_cpu = all(parameter.device.type == "cpu" for parameter in parameters)
    return on_cpu and len(used) == 1 and used <= {dtypes.float32, dtypes.float16, dtypes.bfloat16}


PLAIN = {WhisperDecoder, WhisperDecoderLayer, WhisperSelfAttention, WhisperCrossAttention}
PLAIN |= {ModuleList, Embedding, Linear, LayerNorm, Dropout}
