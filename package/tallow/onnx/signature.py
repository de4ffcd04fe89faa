"""Inputs and outputs of a model: names, dtypes, dims; the check of a call."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tallow import dtypes
from tallow.core.tensor import Tensor
from tallow.errors import ArgumentTypeError
from tallow.onnx.protobuf import DataType, TypeProto, ValueInfoProto
from tallow.onnx.tensors import DTYPES, NARROW


@dataclass(frozen=True)
class ValueInfo:
    """One input or output of a model.

    Attributes:
        name: its name in the file.
        kind: "tensor", "string" for an array of strings, "sequence", "optional", or "unknown".
        dtype: of a tensor; None if the file does not say.
        shape: a number or a name for each dim, None for a dim without a name; None if the file does not say.
    """

    name: str
    kind: str = "unknown"
    dtype: dtypes.dtype | None = None
    shape: tuple[int | str | None, ...] | None = None

    def problem(self, value: Any, also: Callable[[], dtypes.dtype | None]) -> str | None:
        """Return what is wrong with a value, or None.

        Args:    also: returns a floating dtype that inputs may have in place of the one in the file
        """
        if self.kind == "string" and isinstance(value, Tensor | list | tuple | str):
            return f"a {type(value).__name__}; expected a NumPy array of str"
        if self.kind != "tensor" or (not hasattr(value, "dtype") and not isinstance(value, int | float | list | str)):
            return None  # a proxy, which is checked when the graph runs
        if not isinstance(value, Tensor):
            return f"a {type(value).__name__}; expected a Tensor"
        if self.dtype not in (None, value.dtype) and not (
            self.dtype.is_floating_point and value.dtype.is_floating_point and value.dtype is also()
        ):
            return f"dtype {value.dtype}; expected {self.dtype}"
        shape = tuple(value.shape)
        if self.shape is None:
            return None
        is_right = len(shape) == len(self.shape) and all(
            not isinstance(dim, int) or dim == size for dim, size in zip(self.shape, shape, strict=True)
        )
        return None if is_right else f"shape {shape}; expected {self}"

    def __str__(self) -> str:
        dims = ", ".join("?" if dim is None else str(dim) for dim in self.shape or ())
        return f"({dims}{',' if self.shape is not None and len(self.shape) == 1 else ''})"


def value_info(proto: ValueInfoProto) -> ValueInfo:
    """Return what a file says about a value."""
    kind = proto.type
    if kind is None:
        return ValueInfo(proto.name)
    if (tensor := kind.tensor_type) is None:
        return ValueInfo(proto.name, _container(kind))
    shape = None
    if tensor.shape is not None:
        shape = tuple(
            dim.dim_param or None if dim.dim_value is None or dim.dim_value < 0 else dim.dim_value
            for dim in tensor.shape.dim
        )
    if tensor.elem_type == DataType.STRING:
        return ValueInfo(proto.name, "string", None, shape)
    narrow = next((dtype for each, (_, dtype) in NARROW.items() if each == tensor.elem_type), None)
    dtype = next((dtype for each, dtype in DTYPES.items() if each == tensor.elem_type), narrow)
    return ValueInfo(proto.name, "tensor", dtype, shape)


def _container(kind: TypeProto) -> str:
    if kind.sequence_type is not None:
        return "sequence"
    return "optional" if kind.optional_type is not None else "unknown"


def bound(
    inputs: Sequence[ValueInfo],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    also: Callable[[], dtypes.dtype | None],
) -> tuple[Any, ...]:
    """Return the values of a call in the order of the inputs.

    Raises:  ArgumentTypeError that lists every input that is missing, given twice or unknown, and every wrong dtype,
             number of dims and size
    """
    problems: list[str] = []
    values: dict[str, Any] = dict(zip((info.name for info in inputs), args, strict=False))
    if len(args) > len(inputs):
        problems.append(f"{len(args)} values by position; expected at most {len(inputs)}")
    names = {info.name for info in inputs}
    for name, value in kwargs.items():
        if name not in names:
            problems.append(f"{name}: no such input")
        elif name in values:
            problems.append(f"{name}: given twice")
        values[name] = value
    for info in inputs:
        if info.name not in values:
            problems.append(f"{info.name}: missing")
        elif (problem := info.problem(values[info.name], also)) is not None:
            problems.append(f"{info.name}: {problem}")
    if problems:
        listed = "; ".join(f"{info.name} {info.dtype or info.kind}{info}" for info in inputs)
        raise ArgumentTypeError(f"inputs do not fit: {'; '.join(problems)}", hint=f"the inputs are: {listed}")
    return tuple(values[info.name] for info in inputs)
