"""Export of layers with quantised weights: codes and scales as they are, in operators of com.microsoft.

A recorder takes tensors, and the weight of such a layer is a matrix of blocks. So the export runs with other layers in
its place, which hold codes and scales as tensors and call the functions of `MatMulNBits` and `GatherBlockQuantized`.
They multiply in floats; tallow's kernels for the CPU round their input to int8.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from tallow.core.tensor import Tensor, wrap
from tallow.dtypes import widen
from tallow.errors import ArgumentError
from tallow.kernels.quantized.grouped_matrix import INT8, GroupedMatrix
from tallow.nn import functional as F
from tallow.nn.block_layers import BlockEmbedding, BlockLayer, BlockLinear
from tallow.nn.module import Module
from tallow.nn.parameter import Buffer
from tallow.onnx.exporters.builder import Builder, Value
from tallow.onnx.exporters.registry import exports
from tallow.onnx.operators.microsoft_quantized import gather_block_quantized, matmul_nbits

MICROSOFT = "com.microsoft"
SMALLEST_BLOCK = 16  # of MatMulNBits


class _Codes(Module):
    """A matrix (N, K) as codes and scales. Codes of 4 bits lie in pairs in a byte, the first in the lower half."""

    def __init__(self, layer: BlockLayer, grouped: GroupedMatrix) -> None:
        super().__init__()
        self.rows, self.columns = grouped.shape
        self.bits, self.block_size = (8 if grouped.codes.dtype == INT8 else 4), grouped.group
        codes = grouped.codes.view(np.uint8) ^ np.uint8(128) if self.bits == 8 else grouped.codes
        self.codes = Buffer(wrap(np.ascontiguousarray(codes).reshape(self.rows, grouped.scales.shape[1], -1)))
        self.scales = Buffer(wrap(widen(grouped.scales)))
        self.missing = self.columns - layer.size[1]

    def times(self, input: Tensor, bias: Tensor | None = None) -> Tensor:
        """Return input · matrixᵀ + bias."""
        x = F.pad(input, (0, self.missing)) if self.missing else input
        product: Tensor = matmul_nbits(
            x, self.codes, self.scales, None, None, bias, K=self.columns, N=self.rows, bits=self.bits,
            block_size=self.block_size,
        )  # fmt: skip
        return product


class _Product(_Codes):
    """The form of a BlockLinear."""

    def __init__(self, layer: BlockLinear, grouped: GroupedMatrix) -> None:
        super().__init__(layer, grouped)
        self.bias = layer.bias

    def forward(self, input: Tensor) -> Tensor:
        return self.times(input, self.bias)


class _Table(_Codes):
    """The form of a BlockEmbedding."""

    def forward(self, input: Tensor) -> Tensor:
        found: Tensor = gather_block_quantized(
            self.codes.flatten(1), input, self.scales, bits=self.bits, block_size=self.block_size
        )
        return found

    def project(self, hidden: Tensor) -> Tensor:
        """Return hidden · tableᵀ."""
        return self.times(hidden)


class _Floats(Module):
    """The form of a layer whose format has no operator: its weight in float32."""

    def __init__(self, layer: BlockLayer) -> None:
        super().__init__()
        self.weight = Buffer(layer.weight)
        self.bias = getattr(layer, "bias", None)
        self.is_table = isinstance(layer, BlockEmbedding)

    def forward(self, input: Tensor) -> Tensor:
        return F.embedding(input, self.weight) if self.is_table else F.linear(input, self.weight, self.bias)

    def project(self, hidden: Tensor) -> Tensor:
        """Return hidden · tableᵀ."""
        return F.linear(hidden, self.weight)


def _form_of(layer: BlockLayer) -> Module:
    """Return a layer that a recorder takes, with the weight of another."""
    try:
        grouped = GroupedMatrix.of(layer.stored.in_blocks())
    except ArgumentError:
        return _Floats(layer)
    size = grouped.group
    if grouped.shifts is not None or size < SMALLEST_BLOCK or size & (size - 1):
        return _Floats(layer)
    if isinstance(layer, BlockLinear):
        return _Product(layer, grouped)
    return _Table(layer, grouped) if not layer.size[1] % size else _Floats(layer)


@contextmanager
def recordable(model: Module) -> Iterator[Module]:
    """Have layers that a recorder takes in place of those with quantised weights, within the block."""
    if isinstance(model, BlockLayer):
        yield _form_of(model).train(model.training)
        return
    places = [(parent, name, child) for parent in model.modules() for name, child in parent._modules.items()]
    layers = [(parent, name, child) for parent, name, child in places if isinstance(child, BlockLayer)]
    forms = {id(layer): _form_of(layer).train(layer.training) for _, _, layer in layers}
    try:
        for parent, name, layer in layers:
            parent._modules[name] = forms[id(layer)]
        yield model
    finally:
        for parent, name, layer in layers:
            parent._modules[name] = layer


@exports("onnx.operators.microsoft_quantized.matmul_nbits")
def _(
    g: Builder, a: Value, b: Value, scales: Value, zero_points: Value | None = None, g_idx: Value | None = None,
    bias: Value | None = None, K: int = 0, N: int = 0, accuracy_level: int = 0, bits: int = 4, block_size: int = 32,
) -> Value:  # fmt: skip
    return g.op(
        "MatMulNBits", a, b, scales, zero_points, g_idx, bias, domain=MICROSOFT, K=K, N=N, bits=bits,
        block_size=block_size, accuracy_level=accuracy_level,
    )  # fmt: skip


@exports("onnx.operators.microsoft_quantized.gather_block_quantized")
def _(
    g: Builder, data: Value, indices: Value, scales: Value, zero_points: Value | None = None, bits: int = 4,
    block_size: int = 128, gather_axis: int = 0, quantize_axis: int = 1,
) -> Any:  # fmt: skip
    return g.op(
        "GatherBlockQuantized", data, indices, scales, zero_points, domain=MICROSOFT, dtype=scales.dtype, bits=bits,
        block_size=block_size, gather_axis=gather_axis, quantize_axis=quantize_axis,
    )  # fmt: skip
