"""The arguments of an op's call: unpacked, on one device, in the dtype that the op's rule asks for."""

from __future__ import annotations

from typing import Any

import numpy as np

from tallow import devices, dtypes
from tallow.dtypes import HALVES
from tallow.errors import ArgumentTypeError, DeviceError, DtypeError
from tallow.ops.parameters import REQUIRED
from tallow.ops.table import Op
from tallow.tensor import Tensor

F32, F64 = dtypes.float32.storage, dtypes.float64.storage


class Prepared:
    """The arguments of one call, unpacked.

    Attributes:
        call: the arguments for the array function.
        tensors: what stood at each operand, sequences flattened; None for numbers and absent ones.
        half: the sixteen-bit dtype to round the value to, if the op computes in float32 for it.
    """

    __slots__ = ("call", "half", "kwargs", "tensors")

    call: list[Any]
    kwargs: dict[str, Any]
    tensors: list[Tensor | None]
    half: dtypes.dtype | None

    def __init__(self, op: Op, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if not self._take_as_they_are(op, args, kwargs):
            self._take(op, args, kwargs)

    def _take_as_they_are(self, op: Op, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """The short way, for tensors of one dtype and device that need no conversion; False if this is no such call."""
        given = len(args)
        if not (op.required <= given <= op.plain and op.attributes.issuperset(kwargs)):
            return False
        if op.spread is not None and given > op.spread and not isinstance(args[op.spread], tuple | list):
            return False
        for i in op.settings:
            if i >= given:
                break
            if isinstance(args[i], Tensor):
                return False
        for value in kwargs.values():
            if isinstance(value, Tensor):
                return False
        call = list(args)
        tensors: list[Tensor | None] = []
        dtype = first = None
        numbers = False  # beside floats they are weak; integers convert them
        for i, _ in op.operands:
            if i >= given:
                break
            x = args[i]
            if isinstance(x, Tensor):
                array = x.array
                if dtype is None:
                    dtype, first = array.dtype, array
                elif dtype is not array.dtype or not _are_together(array, first):
                    return False
                call[i] = array
                tensors.append(x)
            elif x is None and i in op.optional:
                tensors.append(None)
            elif (type(x) is float or type(x) is int) and i in op.numbers:
                tensors.append(None)
                numbers = True
            else:
                return False
        if dtype is None or (numbers and dtype.kind != "f"):
            return False
        self.half = None
        if dtype in HALVES and op.dtypes != "keep":
            if not op.halves:
                return False
            self.half = dtypes.BY_STORAGE[dtype]
        if op.dtypes == "float" and dtype.kind != "f":
            return False
        for i in op.indices:
            if i < given:
                index = args[i]
                if isinstance(index, Tensor) and not _are_together(index.array, first):
                    return False
                call[i] = _unpack_index(index)
        self.call, self.kwargs, self.tensors = call, kwargs, tensors
        return True

    def _take(self, op: Op, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.half = None
        call, self.kwargs = op.bind(args, kwargs)
        values: list[Any] = []
        tensors: list[Tensor | None] = []
        given = len(call)
        for i, is_sequence in op.operands:
            if i >= given:
                break
            if is_sequence and not isinstance(call[i], list | tuple):
                raise ArgumentTypeError(f"{op.name}: {op.names[i]} must be a list of Tensors, got {call[i]!r:.50}")
            for x in call[i] if is_sequence else (call[i],):
                _unpack(op, i, x, values, tensors)
        if values and (op.dtypes != "keep" or len(values) > 1):
            values = self._convert(op, values, self._wanted_dtype(op, call) if op.casts else None)
        position = 0
        for i, is_sequence in op.operands:
            if i >= given:
                break
            if is_sequence:
                length = len(call[i])
                call[i] = values[position : position + length]
                position += length
            else:
                call[i] = values[position]
                position += 1
        for i in op.indices:
            if i < given:
                call[i] = _unpack_index(call[i])
                _check_index_device(op, call[i], values)
        for name in op.keyword_indices & self.kwargs.keys():
            self.kwargs[name] = _unpack_index(self.kwargs[name])
            _check_index_device(op, self.kwargs[name], values)
        for i in op.settings:
            if i < given and isinstance(call[i], Tensor):
                call[i] = _number(op, op.names[i], call[i])
        for name, value in self.kwargs.items():
            if isinstance(value, Tensor):
                self.kwargs[name] = _number(op, name, value)
        self.call = call
        self.tensors = tensors

    def _wanted_dtype(self, op: Op, call: list[Any]) -> dtypes.dtype | None:
        at = op.names.index("dtype") if "dtype" in op.names else len(call)
        wanted = call[at] if at < len(call) else self.kwargs.get("dtype")
        return None if wanted is None else dtypes.as_dtype(wanted)

    def _convert(self, op: Op, values: list[Any], wanted: dtypes.dtype | None) -> list[Any]:
        arrays = [v for v in values if hasattr(v, "dtype")]
        if not arrays:
            if op.dtypes == "same":
                raise ArgumentTypeError(f"{op.name}: expected at least one Tensor among the operands, got {values}")
            arrays = []
        elif any(type(a) is not type(arrays[0]) for a in arrays) or type(arrays[0]) is not np.ndarray:
            values = _on_one_device(op, values)
            arrays = [v for v in values if hasattr(v, "dtype")]
        first = arrays[0].dtype if arrays else None
        uniform = all(a.dtype == first for a in arrays) and len(arrays) == sum(v is not None for v in values)
        if op.dtypes == "keep":
            return values if uniform else _same_dtype(op, values)
        if wanted is not None:
            common = wanted
            values = [v if v is None else _convert_operand(v, wanted) for v in values]
        elif op.dtypes == "same":
            values = values if uniform else _same_dtype(op, values)
            common = dtypes.dtype_of(arrays[0])
        else:
            common = dtypes.dtype_of(arrays[0]) if uniform and arrays else dtypes.result_type(values)
            if op.dtypes == "float" and not common.is_floating_point:
                common = dtypes.get_default_dtype()
            if not uniform or common.storage != first:
                convert = _convert_array if op.dtypes == "divide" else _convert_operand
                values = [convert(v, common) for v in values]
        if common.storage in HALVES:
            self.half = common
            if not op.halves:
                values = [dtypes.widen(v) if hasattr(v, "dtype") else v for v in values]
        return values


def _are_together(a: Any, b: Any) -> bool:
    """Whether two arrays are on one device."""
    return type(a) is type(b) and (type(a) is np.ndarray or devices.device_of(a) == devices.device_of(b))


def _unpack(op: Op, i: int, x: Any, values: list[Any], tensors: list[Tensor | None]) -> None:
    """Append what stands at operand `i`."""
    if isinstance(x, Tensor):
        values.append(x.array)
        tensors.append(x)
        return
    if isinstance(x, np.generic):
        x = x.item()
    if not (isinstance(x, int | float) and i in op.numbers) and not (x is None and i in op.optional):
        expected = "a Tensor or a number" if i in op.numbers else "a Tensor"
        raise ArgumentTypeError(
            f"{op.name}: {op.names[i]} must be {expected}, not {type(x).__name__}",
            mend="convert it first: tl.tensor(...) or tl.from_numpy(...)",
        )
    values.append(x)
    tensors.append(None)


def _number(op: Op, name: str, x: Tensor) -> Any:
    """A tensor that stands at an attribute, as the number it holds.

    Raises: ArgumentTypeError for one that is no number, or whose gradient would be lost.
    """
    parameter = next((p for p in op.parameters if p.name == name), None)
    if parameter is None or not (parameter.takes_numbers or parameter.annotation is REQUIRED):
        return x  # the array function says what it makes of it
    if x.ndim or x.requires_grad or not parameter.takes_numbers:
        what = "a Tensor that requires grad" if x.requires_grad else f"a Tensor of shape {tuple(x.shape)}"
        raise ArgumentTypeError(
            f"{op.name}: {name} is an attribute, so it cannot be {what}",
            mend=f"pass a number; or annotate {name} as an operand in the array function, such as `{name}: Array`",
        )
    return x.item()


def _unpack_index(x: Any) -> Any:
    if isinstance(x, Tensor):
        return x.array
    if isinstance(x, list | tuple):
        return type(x)(_unpack_index(item) for item in x) if type(x) in (list, tuple) else x
    return x


def _check_index_device(op: Op, index: Any, values: list[Any]) -> None:
    """Raises: DeviceError for an index beside operands that are elsewhere; libraries would copy it, or fail."""
    parts = [part for part in (index if isinstance(index, tuple | list) else (index,)) if devices.is_array(part)]
    if parts:
        arrays = [value for value in values if devices.is_array(value)]
        _on_one_device(op, arrays + [part if part.ndim else part.reshape(1) for part in parts])


def _on_one_device(op: Op, values: list[Any]) -> list[Any]:
    """Zero-dim CPU tensors follow the others; anything else must be on one device already."""
    arrays = [v for v in values if hasattr(v, "dtype")]
    found = list(dict.fromkeys(devices.device_of(a) for a in arrays if a.ndim or devices.device_of(a) != devices.CPU))
    if len(found) > 1:
        names = " and ".join(map(str, found))
        raise DeviceError(
            f"{op.name}: expected all tensors to be on the same device, found {names}",
            mend="move them with .to(device)",
        )
    if not found:
        return values
    return [devices.move(v, found[0]) if hasattr(v, "dtype") else v for v in values]


def _same_dtype(op: Op, values: list[Any]) -> list[Any]:
    found = list(dict.fromkeys(dtypes.dtype_of(v).name for v in values if hasattr(v, "dtype")))
    if len(found) > 1:
        raise DtypeError(
            f"{op.name}: expected operands of one dtype, got {' and '.join(found)}", mend="convert with .to(dtype)"
        )
    return values


def _convert_array(value: Any, to: dtypes.dtype) -> Any:
    return dtypes.cast(value, to) if hasattr(value, "dtype") else value


def _convert_operand(value: Any, to: dtypes.dtype) -> Any:
    if hasattr(value, "dtype"):
        return dtypes.cast(value, to)
    if to.category == 1 and value is not None:
        return np.asarray(int(value)).astype(to.storage)[()]  # wraps around as C does; NumPy would raise
    return value
