"""The layers of an encoder, and their short way in inference: all of them by the kernel "encoder_blocks".

It makes one call of some fifteen for each layer, need not compute padding, and is faster than they are together.

Letters: B batch, T positions, D width.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from operator import is_
from typing import Any, ClassVar
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from tallow import kernels
from tallow.autograd.modes import mode
from tallow.errors import ShapeError
from tallow.kernels.cross_decode_block import Affine
from tallow.kernels.encoder_blocks import EncoderBlock
from tallow.nn.container import ModuleList
from tallow.nn.dropout import Dropout
from tallow.nn.linear import Linear
from tallow.nn.module import Module
from tallow.nn.normalization import LayerNorm
from tallow.tensor import Tensor, wrap

Kinds = Mapping[type[Module], tuple[str, ...]]
COMMON: Kinds = {ModuleList: (), Linear: (), LayerNorm: ("eps",), Dropout: ()}


class EncoderLayers(Module):
    """Layers of one kind, each given what the one before it gives."""

    # What a layer is made of, and which attributes decide what that computes. A layer with anything else in it, with
    # hooks, in training, or of another dtype or device, is called as it is.
    kinds: ClassVar[Kinds] = COMMON

    def __init__(self, layers: Iterable[Module]) -> None:
        super().__init__()
        self.layer = ModuleList(layers)

    def block_of(self, layer: Any) -> EncoderBlock | None:
        """A layer made of `kinds` in float32 as the kernel takes it; None if it computes something else."""
        raise NotImplementedError

    def forward(self, x_BTD: Tensor, mask: Tensor | None, *, skip_padding: bool = False) -> Tensor:
        """
        Args:
            mask: True for the keys that queries may see, as attention takes it.
            skip_padding: what is not seen need not be computed either, and may be zeros.
        """
        blocks = None if mode.recording or mode.autocast is not None else _blocks_of(self)
        if blocks and _is_plain(x_BTD, mask):
            seen = None if mask is None else mask.array.reshape(x_BTD.shape[:2])
            return wrap(_inference(x_BTD.array, blocks, seen, skip_padding))
        for layer in self.layer:
            x_BTD = layer(x_BTD, mask)
        return x_BTD


# What `_contents` found, and the blocks made of it. Not kept in the modules: their copies have arrays of their own.
_KNOWN: WeakKeyDictionary[EncoderLayers, tuple[list[Any], list[EncoderBlock]]] = WeakKeyDictionary()


def _blocks_of(layers: EncoderLayers) -> list[EncoderBlock]:
    """The layers as the kernel takes them; none where it does not."""
    contents: list[Any] = []
    if not _contents(layers.layer, layers.kinds, contents):
        return []
    known, blocks = _KNOWN.get(layers, ([], []))
    if len(known) != len(contents) or not all(map(is_, known, contents)):
        blocks = _made_of(layers) if _all_float32(layers) else []
        _KNOWN[layers] = contents, blocks
    return blocks


def _made_of(layers: EncoderLayers) -> list[EncoderBlock]:
    blocks = []
    for layer in layers.layer:
        try:
            block = layers.block_of(layer)
        except ShapeError:  # of a size of its own, as where heads were taken out
            return []
        if block is None:
            return []
        blocks.append(block)
    return blocks


def _contents(module: Module, kinds: Kinds, found: list[Any]) -> bool:
    """Whether a module and all in it are of `kinds`, do no more than these and do not train; appends their arrays and
    settings to `found`, whose identities tell whether anything has changed."""
    settings = kinds.get(type(module))
    if settings is None or module.training or module.has_hooks():
        return False
    entries = module.__dict__
    parameters = entries["_parameters"]
    if parameters.get("weight", module) is None:  # a norm that does not scale
        return False
    found.extend(entries[name] for name in settings)
    found.extend(None if each is None else each.array for each in parameters.values())
    return all(each is not None and _contents(each, kinds, found) for each in entries["_modules"].values())


def _all_float32(layers: EncoderLayers) -> bool:
    arrays = [parameter.array for parameter in layers.parameters()]
    return all(type(array) is np.ndarray and array.dtype == np.float32 for array in arrays)


def _is_plain(x_BTD: Tensor, mask: Tensor | None) -> bool:
    """Whether x is of float32 on a CPU, and the mask one of its positions as `key_mask` makes it."""
    x = x_BTD.array
    if type(x) is not np.ndarray or x.dtype != np.float32 or x.ndim != 3:
        return False
    return mask is None or (mask.array.dtype == np.bool_ and mask.shape == (x.shape[0], 1, 1, x.shape[1]))


def _inference(
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


def affine(module: Linear | LayerNorm) -> Affine:
    """The arrays of a layer that has a weight."""
    assert module.weight is not None
    return Affine(module.weight.array, None if module.bias is None else module.bias.array)
