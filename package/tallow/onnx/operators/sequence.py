"""ONNX sequences, which are Python lists, and optionals, which are a value or None.

Source:  https://onnx.ai/onnx/operators, opset 26
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tallow as tl
from tallow import Tensor
from tallow.errors import ArgumentError
from tallow.onnx.operators.registry import operator

Sequence = list[Any]


@operator("SequenceConstruct", since=11, whole=True)
def sequence_construct(*inputs: Any) -> Sequence:
    """Return a sequence of the operands."""
    return list(inputs)


@operator("SequenceEmpty", since=11, whole=True)
def sequence_empty(*, dtype: int = 1) -> Sequence:
    """Return a sequence without elements; `dtype` types the elements to come, which keep their own."""
    return []


@operator("SequenceInsert", since=11, whole=True)
def sequence_insert(input_sequence: Sequence, tensor: Any, position: Tensor | None = None) -> Sequence:
    """Return a sequence with one more element: before `position`, or at the end."""
    at = length = len(input_sequence)
    if position is not None and int(position.item()) != length:
        at = _place(position, length)
    return [*input_sequence[:at], tensor, *input_sequence[at:]]


@operator("SequenceErase", since=11, whole=True)
def sequence_erase(input_sequence: Sequence, position: Tensor | None = None) -> Sequence:
    """Return a sequence without the element at `position`, or without the last."""
    at = len(input_sequence) - 1 if position is None else _place(position, len(input_sequence))
    return input_sequence[:at] + input_sequence[at + 1 :]


@operator("SequenceAt", since=11, whole=True)
def sequence_at(input_sequence: Sequence, position: Tensor) -> Any:
    """Return an element; negative positions count from the end."""
    return input_sequence[_place(position, len(input_sequence))]


def _place(position: Tensor, length: int) -> int:
    """Return a position from the start.  Raises: ArgumentError if it is outside"""
    at = int(position.item())
    if not -length <= at < length:
        raise ArgumentError(f"position {at} of a sequence with {length} places", hint="negative ones are from the end")
    return at % length


@operator("SequenceLength", since=11, whole=True)
def sequence_length(input_sequence: Sequence) -> Tensor:
    """Return the number of elements."""
    return tl.tensor(len(input_sequence))


@operator("ConcatFromSequence", since=11, whole=True)
def concat_from_sequence(input_sequence: Sequence, *, axis: int, new_axis: int = 0) -> Tensor:
    """Concatenate the elements along `axis`, or stack them along a new one."""
    return tl.stack(input_sequence, axis) if new_axis else tl.cat(input_sequence, axis)


@operator("SplitToSequence", since=11, whole=True)
def split_to_sequence(x: Tensor, split: Tensor | None = None, *, axis: int = 0, keepdims: int = 1) -> Sequence:
    """Cut along `axis` into parts of the lengths `split`: one for each part, or one for all; by default 1.

    Without `split` and with `keepdims=0` the parts lose the dim.
    """
    if split is None:
        return list(tl.split(x, 1, axis)) if keepdims else list(tl.unbind(x, axis))
    return list(tl.split(x, split.tolist() if split.dim() else int(split.item()), axis))


@operator("SequenceMap", since=17, whole=True)
def sequence_map(input_sequence: Sequence, *additional_inputs: Any, body: Callable[..., Any], outputs: int = 1) -> Any:
    """Call a graph on the elements; further sequences give an element to each call, tensors go to all calls."""
    results: list[Sequence] = [[] for _ in range(outputs)]
    for i, element in enumerate(input_sequence):
        others = [each[i] if isinstance(each, list) else each for each in additional_inputs]
        values = body(element, *others)
        for kept, value in zip(results, values if isinstance(values, tuple) else (values,), strict=True):
            kept.append(value)
    return tuple(results) if outputs > 1 else results[0]


@operator("Optional", since=15, whole=True)
def optional(x: Any = None, *, type: Any = None) -> Any:
    """Return an optional with a value, or without one; `type` is that of the value to come."""
    return x


@operator("OptionalHasElement", since=15, whole=True)
def optional_has_element(x: Any = None) -> Tensor:
    """Return whether there is a value."""
    return tl.tensor(x is not None)


@operator("OptionalGetElement", since=15, whole=True)
def optional_get_element(x: Any) -> Any:
    """Return the value of an optional.  Raises: ArgumentError if there is none"""
    if x is None:
        raise ArgumentError("OptionalGetElement: the optional is empty", hint="ask OptionalHasElement first")
    return x
