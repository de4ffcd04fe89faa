"""Language models with their keys and values as arguments and results, for export to ONNX.

The names are those of files with a merged decoder, as optimum and transformers.js have them: `past_key_values.N.key`
goes in, `present.N.key` comes out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tallow.core.apply import apply
from tallow.core.creation import zeros
from tallow.core.tensor import Tensor
from tallow.dtypes import int64
from tallow.errors import ArgumentTypeError
from tallow.export.dims import Dim
from tallow.models.causal_lm import CausalLM
from tallow.nn.cache import KVCache
from tallow.nn.module import Module
from tallow.ops.joining import cat

UNBOUNDED = 1 << 31  # positions


class _Past(KVCache):
    """Keys and values as tensors: those of the past go in, those of the past and the present are kept.

    Args:    past: of each layer, keys and values (B, G, P, K)
    """

    def __init__(self, past: Sequence[tuple[Tensor, Tensor]]) -> None:
        super().__init__(0, 1, 0, UNBOUNDED, 0)
        self.past = list(past)
        self.present = list(past)
        self.length = past[0][0].shape[2]

    def append(self, layer: int, k_BGTK: Tensor, v_BGTK: Tensor) -> tuple[Tensor, Tensor]:
        """Return the keys and values of the past and of the present."""
        keys, values = self.past[layer]
        self.present[layer] = apply(cat, [keys, k_BGTK], 2), apply(cat, [values, v_BGTK], 2)
        return self.present[layer]

    def advance(self, positions: int) -> None:
        """Keep the length: a call of the model ends with this."""


class DecoderWithPast(Module):
    """A language model whose cache is an argument and a result.

    Args:    model: any model of `tallow.models` that has a cache
    Shapes:  input_ids (B, T), and of each layer keys and values (B, G, P, K), where P may be 0 -> logits (B, T, V), and
             keys and values (B, G, P + T, K)
    Raises:  ArgumentTypeError for another module

    Example:
        import tallow as tl
        decoder = tl.onnx.DecoderWithPast(model)
        tl.onnx.export(decoder, f="decoder_model_merged.onnx", **decoder.export_arguments())
    """

    def __init__(self, model: CausalLM) -> None:
        if not isinstance(model, CausalLM):
            raise ArgumentTypeError(f"DecoderWithPast: a {type(model).__name__} has no cache of keys and values")
        if model.config.layer_shapes is not None:
            raise ArgumentTypeError(
                f"DecoderWithPast: the layers of a {type(model).__name__} have caches of several kinds"
            )
        super().__init__()
        self.model = model

    def forward(self, input_ids: Tensor, *past_key_values: Tensor) -> tuple[Tensor, ...]:
        cache = _Past(list(zip(past_key_values[::2], past_key_values[1::2], strict=True)))
        logits = self.model(input_ids, cache)
        return logits, *(part for pair in cache.present for part in pair)

    def empty(self, batch: int = 1, past: int = 0) -> tuple[Tensor, ...]:
        """Return the arguments `past_key_values` of a text that begins, or zeros for `past` positions."""
        layers, heads, width = self.model.cache_shape
        weight = next(self.model.parameters())
        shape = (batch, heads, past, width)
        return tuple(zeros(shape, dtype=weight.dtype, device=weight.device) for _ in range(2 * layers))

    def export_arguments(self) -> dict[str, Any]:
        """Return the arguments of `tl.onnx.export`: an example, names, and the sizes that vary."""
        device = next(self.model.parameters()).device
        context = self.model.context_length
        batch, tokens = Dim("batch_size"), Dim("sequence_length", max=max(4, 2 * context // 5))
        past = Dim("past_sequence_length", min=0, max=max(6, 3 * context // 5))  # the file itself has no limits
        places = [f"{i}.{kind}" for i in range(self.model.cache_shape.layers) for kind in ("key", "value")]
        sizes = {0: batch, 2: past}
        return {
            "args": (zeros(2, 2, dtype=int64, device=device), *self.empty(2, 3)),
            "input_names": ["input_ids", *(f"past_key_values.{place}" for place in places)],
            "output_names": ["logits", *(f"present.{place}" for place in places)],
            "dynamic_shapes": {"input_ids": {0: batch, 1: tokens}, "past_key_values": tuple(sizes for _ in places)},
        }
