"""The layers of an encoder. In inference the fused kernel "encoder_blocks" computes all of them.

That is one call in place of about fifteen for each layer, and it can skip padding.

Letters: B batch, T positions, D width.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import partial
from typing import Any, ClassVar
from weakref import WeakKeyDictionary, ref

import numpy as np
import numpy.typing as npt

from tallow import dtypes, kernels
from tallow.core.public_api import PUBLIC
from tallow.core.tensor import Tensor, wrap
from tallow.errors import ArgumentError
from tallow.fused.eligibility import Blocks, Kind, Pattern, why_not
from tallow.fused.explanation import LayerReport
from tallow.fused.weights import affine
from tallow.kernels.blocks.encoder_block import EncoderBlock
from tallow.kernels.fallback import check_fallback
from tallow.models.activations import COMPILED, Activation
from tallow.nn.block_layers import BlockLinear
from tallow.nn.container import ModuleList
from tallow.nn.dropout import Dropout
from tallow.nn.linear import Linear
from tallow.nn.module import Module
from tallow.nn.normalization import LayerNorm
from tallow.tape.modes import is_exporting, mode

where = PUBLIC["tl"]["where"]
ACTIVATION = Kind(allowed={"activation": tuple(COMPILED)})
ATTENTION = Kind(settings=("num_heads",), dropout=("dropout_p",))


def encoder_pattern(kinds: dict[type[Module], Kind]) -> Pattern:
    """Return the pattern of an encoder's layers.

    Args:    kinds: the classes of an architecture, besides those of `tallow.nn`
    """
    common: dict[type[Module], Kind] = {
        ModuleList: Kind(),
        Linear: Kind(),
        BlockLinear: Kind(settings=("format",)),
        LayerNorm: Kind(settings=("eps",)),
        Dropout: Kind(dropout=("p",)),
    }
    return Pattern(common | kinds, frozenset({dtypes.float32}), frozenset({"cpu"}))


class FeedForward(Module):
    """fc2(activation(fc1(x)))"""

    def __init__(self, width: int, inner: int, activation: Activation, device: Any, dtype: Any) -> None:
        super().__init__()
        self.fc1 = Linear(width, inner, device=device, dtype=dtype)
        self.fc2 = Linear(inner, width, device=device, dtype=dtype)
        self.activation = activation

    def forward(self, x_BTD: Tensor) -> Tensor:
        return self.fc2(self.activation(self.fc1(x_BTD)))


class EncoderLayers(Module):
    """Layers of one kind, each applied to the output of the one before it.

    Attributes:
        pattern: the modules that the fused kernel replaces; the layers are called where they differ.
    """

    pattern: ClassVar[Pattern]

    def __init__(self, layers: Iterable[Module] | None = None) -> None:
        super().__init__()
        if layers is not None:
            self.layer = ModuleList(layers)

    def in_order(self) -> list[Any]:
        """Return the layers in the order in which they are applied. One may occur several times."""
        return list(self.layer)

    def block_of(self, layer: Any) -> EncoderBlock:
        """Return the fused block of a layer that matches the pattern.

        Raises:  ShapeError, ArgumentError for sizes and settings that the block does not have
        """
        raise NotImplementedError

    def bias(self, length: int) -> Tensor | None:
        """Return what is added to the scores of attention in all layers, (1, H, T, T); None for nothing."""
        return None

    def limit(self) -> str | None:
        """Return why the fused kernel cannot compute the layers, whatever modules they consist of; or None."""
        return None

    def forward(self, x_BTD: Tensor, mask: Tensor | None, *, skip_padding: bool = False) -> Tensor:
        """Apply all layers.

        Args:
            mask: True for the keys that queries may see, as attention takes it.
            skip_padding: positions that no query may see need not be computed, and may be zeros.
        """
        reason = _unfit(x_BTD, mask)
        if reason is None:
            blocks, reason = self._blocks()
            if blocks is not None:
                seen = None if mask is None else mask.array.reshape(x_BTD.shape[:2])
                return wrap(_run(x_BTD.array, blocks, seen, skip_padding))
        check_fallback(type(self).__name__, reason or "")
        return self.run_layers(x_BTD, mask)

    def run_layers(self, x_BTD: Tensor, mask: Tensor | None) -> Tensor:
        """Apply all layers, one after the other."""
        bias = self.bias(x_BTD.shape[1])
        if bias is not None:
            mask = bias if mask is None else bias + where(mask, 0.0, -math.inf).to(bias.dtype)
        for layer in self.in_order():
            x_BTD = layer(x_BTD, mask)
        return x_BTD

    def _blocks(self) -> tuple[list[EncoderBlock] | None, str | None]:
        """Return the fused blocks of the layers; or None, and why the layers have to run."""
        kept = _BLOCKS.get(self)
        if kept is None:
            kept = _BLOCKS[self] = Blocks(self.pattern)
        layers = partial(_layers, ref(self))  # weak: what is kept must not hold its own key
        blocks = kept.current(layers, lambda: [self.block_of(layer) for layer in self.in_order()], self.limit)
        return blocks, kept.reason

    def reports(self, name: str) -> list[LayerReport]:
        """Return how each layer runs in inference, for `explain`.

        Args:    name: of this module in the model
        """
        blocks, reason = self._blocks()
        layers = {f"{name}.layer.{i}": layer for i, layer in enumerate(self.in_order())}
        if blocks is None:
            reasons = [why_not({place: layer}, self.pattern) or reason for place, layer in layers.items()]
            return [LayerReport(place, reason=own) for place, own in zip(layers, reasons, strict=True)]
        kernel = [f"encoder_blocks, {_backend(block)}" for block in blocks]
        return [LayerReport(place, each) for place, each in zip(layers, kernel, strict=True)]


# Not kept in the modules: a copy of a module has arrays of its own.
_BLOCKS: WeakKeyDictionary[EncoderLayers, Blocks[list[EncoderBlock]]] = WeakKeyDictionary()


def _layers(encoder: ref[EncoderLayers]) -> dict[str, Module]:
    found = encoder()
    return {} if found is None else {f"layer.{i}": layer for i, layer in enumerate(found.in_order())}


def _unfit(x_BTD: Tensor, mask: Tensor | None) -> str | None:
    """Return why the kernel cannot take a call, or None: it records nothing, and takes float32 on a CPU, and a mask as
    `key_mask` makes it."""
    if mode.recording:
        return "autograd records; call it under tl.no_grad()"
    if mode.autocast is not None:
        return "autocast is on"
    if is_exporting():
        return "the call is exported"
    x = x_BTD.array
    if type(x) is not np.ndarray or x.dtype != np.float32 or x.ndim != 3:
        return f"the input is {x_BTD.dtype.name} {tuple(x_BTD.shape)} on {x_BTD.device}, not float32 (B, T, D) on cpu"
    if mask is not None and (mask.array.dtype != np.bool_ or mask.shape != (x.shape[0], 1, 1, x.shape[1])):
        return f"the mask is {mask.dtype.name} {tuple(mask.shape)}, not bool (B, 1, 1, T)"
    return None


def _run(
    x_BTD: npt.NDArray[np.float32], blocks: list[EncoderBlock], seen_BT: npt.NDArray[np.bool_] | None, skip: bool
) -> npt.NDArray[np.float32]:
    batch, length, width = x_BTD.shape
    if seen_BT is None or not skip:
        seen_N = None if seen_BT is None else seen_BT.reshape(-1)
        offsets = np.arange(batch + 1) * length
        y: npt.NDArray[np.float32] = kernels.run("encoder_blocks", x_BTD.reshape(-1, width), blocks, offsets, seen_N)
        return y.reshape(x_BTD.shape)
    y = np.zeros(x_BTD.shape, np.float32)
    offsets = np.concatenate(([0], seen_BT.sum(axis=1).cumsum()))
    y[seen_BT] = kernels.run("encoder_blocks", x_BTD[seen_BT], blocks, offsets, None)
    return y


def _backend(block: EncoderBlock) -> str:
    x = np.zeros((1, block.width), np.float32)
    return kernels.pick("encoder_blocks", "cpu", x, [block], np.array([0, 1]), None).backend


def encoder_block(
    *,
    query: Linear | BlockLinear,
    key: Linear | BlockLinear,
    value: Linear | BlockLinear,
    output: Linear | BlockLinear,
    attention_norm: LayerNorm,
    up: Linear | BlockLinear,
    down: Linear | BlockLinear,
    output_norm: LayerNorm,
    heads: int,
    activation: Activation,
) -> EncoderBlock:
    """Return the fused block of a layer's parts.

    Raises:  ShapeError for sizes that do not fit each other; ArgumentError for two norms with different eps
    """
    if attention_norm.eps != output_norm.eps:
        raise ArgumentError(f"its norms have eps {attention_norm.eps} and {output_norm.eps}; the fused block has one")
    return EncoderBlock(
        query=affine(query),
        key=affine(key),
        value=affine(value),
        output=affine(output),
        attention_norm=affine(attention_norm),
        up=affine(up),
        down=affine(down),
        output_norm=affine(output_norm),
        heads=heads,
        eps=output_norm.eps,
        activation=COMPILED[activation],
    )
