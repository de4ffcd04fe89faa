"""Prepare the arguments of an op's call: unpack tensors, check devices, convert dtypes by the op's rule."""

from __future__ import annotations

from operator import is_
from types import NoneType
from typing import Any

import numpy as np

from tallow import devices, dtypes
from tallow.core.half_precision import widen_operands
from tallow.core.tensor import Tensor
from tallow.dtypes import HALVES
from tallow.errors import ArgumentTypeError, DeviceError, DtypeError, NumericError
from tallow.ops.checks import refuse, refuse_complex
from tallow.ops.dims import as_int, is_int
from tallow.ops.parameters import REQUIRED
from tallow.ops.table import Op

F32, F64 = dtypes.float32.storage, dtypes.float64.storage
# An array function gets attributes of Python's types. NumPy would compute in the dtype of its own numbers.
CONVERTED = (Tensor, np.generic)
UNUSUAL = HALVES | {dtypes.complex64.storage, dtypes.complex128.storage}
PLAIN = frozenset((int, float, bool, str, NoneType))


class Prepared:
    """The arguments of one call, unpacked.

    Attributes:
        call: the arguments for the array function.
        tensors: the tensor at each operand, sequences flattened; None for numbers and absent operands.
        half: the sixteen-bit dtype to round the value to, if the op computes in float32 for it.

    There are two ways. `_unpack_plain` serves calls where nothing has to be converted, in one loop: it is on the path
    of every op on a GPU. `_unpack_general` serves all others, and raises the errors.
    """

    __slots__ = ("call", "half", "kwargs", "tensors")

    call: list[Any]
    kwargs: dict[str, Any]
    tensors: list[Tensor | None]
    half: dtypes.dtype | None

    def __init__(self, op: Op, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if not self._unpack_plain(op, args, kwargs):
            self._unpack_general(op, args, kwargs)

    def _unpack_plain(self, op: Op, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """Unpack tensors of one dtype on one device that need no conversion. Return False if this is not such a call.

        It refuses whatever needs a closer look, and changes nothing then.
        """
        given = len(args)
        if not (op.required <= given <= op.plain and op.attributes.issuperset(kwargs)):
            return False
        if op.spread is not None and given > op.spread and not isinstance(args[op.spread], tuple | list):
            return False
        for i, types in op.settings:
            if i >= given:
                break
            if type(args[i]) not in (types or PLAIN) and (types or not _is_plain(args[i])):
                return False
        for name, value in kwargs.items():
            types = op.checked.get(name)
            if type(value) not in (types or PLAIN) and (types or not _is_plain(value)):
                return False
        call = list(args)
        tensors: list[Tensor | None] = []
        dtype = first = None
        numbers = False  # with float tensors, numbers do not affect the dtype; with integers they may
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
        if dtype in UNUSUAL and op.dtypes != "keep":
            if not op.halves or dtype.kind == "c":
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

    def _unpack_general(self, op: Op, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Unpack any call: bind arguments by name, convert operands, move zero-dim tensors, check indices."""
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
            values = self._convert(op, values, self._explicit_dtype(op, call) if op.casts else None)
        # `values` is flat; put the converted operands back where they came from.
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
        for i, _ in op.settings:
            if i < given:
                call[i] = _attribute(op, op.names[i], call[i])
        for name, value in self.kwargs.items():
            self.kwargs[name] = _attribute(op, name, value)
        self.call = call
        self.tensors = tensors

    def _explicit_dtype(self, op: Op, call: list[Any]) -> dtypes.dtype | None:
        """Return the dtype passed as the argument `dtype`, if any."""
        at = op.names.index("dtype") if "dtype" in op.names else len(call)
        dtype = call[at] if at < len(call) else self.kwargs.get("dtype")
        return None if dtype is None else dtypes.as_dtype(dtype)

    def _convert(self, op: Op, values: list[Any], explicit: dtypes.dtype | None) -> list[Any]:
        """Convert the operands to one device and, by the op's rule, to one dtype; `explicit` overrides the rule."""
        if not op.complex and (explicit is None or explicit.is_complex):
            refuse_complex(op.name, values)
        if op.refuses is not None:
            refuse(op.refuses, op.name, values)
        arrays = [v for v in values if hasattr(v, "dtype")]
        if not arrays and op.numbers_alone:
            arrays = values = [np.asarray(v, dtypes.scalar_dtype(v).storage) for v in values]
        if not arrays:
            if not op.indices or op.dtypes in ("same", "mixed"):
                raise ArgumentTypeError(f"{op.name}: expected at least one Tensor among the operands, got {values}")
        elif any(type(a) is not type(arrays[0]) for a in arrays) or type(arrays[0]) is not np.ndarray:
            values = _on_one_device(op, values)
            arrays = [v for v in values if hasattr(v, "dtype")]
        first = arrays[0].dtype if arrays else None
        uniform = all(a.dtype == first for a in arrays) and len(arrays) == sum(v is not None for v in values)
        if op.dtypes == "keep":
            return values if uniform else _same_dtype(op, values)
        if explicit is not None:
            common = explicit
            values = [v if v is None else _convert_operand(v, explicit) for v in values]
        elif op.dtypes == "mixed" and first in HALVES and {a.dtype for a in arrays[1:]} == {F32}:
            common = dtypes.dtype_of(arrays[0])
            values = widen_operands(values)
        elif op.dtypes in ("same", "mixed"):
            values = values if uniform else _same_dtype(op, values)
            common = dtypes.dtype_of(arrays[0])
        elif op.dtypes == "first":
            common = dtypes.dtype_of(arrays[0])
            if common.category < 3 and any(a.dtype.kind == "c" for a in arrays):
                if any(_is_imaginary(a) for a in arrays):
                    raise NumericError(
                        f"{op.name}: a complex value cannot be converted to {common.name} without overflow",
                        hint="pass the real part of the value, or convert the input",
                    )
                values = [v.real if hasattr(v, "dtype") else v for v in values]
            values = [_convert_array(v, common) for v in values]
        else:
            common = dtypes.dtype_of(arrays[0]) if uniform and arrays else dtypes.result_type(values)
            if op.dtypes == "float" and common.category < 2:
                common = dtypes.get_default_dtype()
            if not uniform or common.storage != first:
                convert = _convert_array if op.dtypes == "divide" else _convert_operand
                values = [convert(v, common) for v in values]
        if common.storage in HALVES:
            self.half = common
            if not op.halves:
                values = widen_operands(values)
        return values


def _is_imaginary(array: Any) -> bool:
    """Return whether some elements are no real numbers; False of an array without values."""
    is_known = array.dtype.kind == "c" and devices.device_type_of(array) != "meta"
    return is_known and bool((array.imag != 0).any())


def _are_together(a: Any, b: Any) -> bool:
    """Return whether two arrays are on one device."""
    kind = type(a)
    return kind is type(b) and (kind not in devices.MULTI_DEVICE or devices.device_of(a) == devices.device_of(b))


def _unpack(op: Op, i: int, x: Any, values: list[Any], tensors: list[Tensor | None]) -> None:
    """Append the argument at operand `i`, which must be a tensor, or a number or None where the op takes them."""
    if isinstance(x, Tensor):
        values.append(x.array)
        tensors.append(x)
        return
    x = x.item() if isinstance(x, np.generic) else plain_number(x)
    if not (isinstance(x, int | float | complex) and i in op.numbers) and not (x is None and i in op.optional):
        expected = "a Tensor or a number" if i in op.numbers else "a Tensor"
        raise ArgumentTypeError(
            f"{op.name}: {op.names[i]} must be {expected}, not {type(x).__name__}",
            hint="convert it first: tl.tensor(...) or tl.from_numpy(...)",
        )
    values.append(x)
    tensors.append(None)


def plain(value: Any) -> Any:
    """Return an attribute with Python's numbers in place of those of NumPy, of tensors and of classes with `__index__`.

    An attribute without any is returned itself; so is a tensor, because it depends on the op whether it is a number.
    """
    if type(value) in PLAIN or isinstance(value, Tensor):
        return value
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, list | tuple):
        items = [as_int(x, "") if isinstance(x, Tensor) and is_int(x) else plain(x) for x in value]
        return value if all(map(is_, items, value)) else items if isinstance(value, list) else tuple(items)
    value = plain_number(value)
    return as_int(value, "") if is_int(value) else value


def plain_number(value: Any) -> Any:
    """Return a number of a subclass of int or float as one of Python's own, and anything else itself.

    NumPy takes those of a subclass for numbers of 64 bits, which decide the dtype of the result.
    """
    if isinstance(value, int) and type(value) is not bool:
        return int.__pos__(value)
    return float.__pos__(value) if isinstance(value, float) else value


def _is_plain(value: Any) -> bool:
    return not isinstance(value, Tensor) and plain(value) is value


def _attribute(op: Op, name: str, value: Any) -> Any:
    """Return an attribute as the array function gets it.  Raises: ArgumentTypeError for another type than declared"""
    value = _number(op, name, value) if isinstance(value, Tensor) else plain(value)
    if (types := op.checked.get(name)) is not None:
        check_type(op.name, name, value, types)
    return value


def check_type(function: str, name: str, value: Any, types: tuple[type, ...]) -> None:
    """Raise ArgumentTypeError unless an argument has one of some types, or of NumPy's or a 0-d tensor's numbers."""
    if isinstance(value, Tensor) and Tensor not in types and not value.ndim and str not in types:
        value = value.item()
    value = plain(value)
    if not isinstance(value, types) or (isinstance(value, bool) and bool not in types):
        raise ArgumentTypeError(
            f"{function}: argument '{name}' must be {types[0].__name__}, not {type(value).__name__}"
        )


def _number(op: Op, name: str, x: Tensor) -> Any:
    """Return the number that a tensor at an attribute holds.

    Raises: ArgumentTypeError for a tensor with dims, or one that requires grad: its gradient would be lost.
    """
    parameter = next((p for p in op.parameters if p.name == name), None)
    if parameter is None or not (parameter.takes_numbers or parameter.annotation is REQUIRED):
        return x  # the array function accepts or refuses it
    if x.ndim or x.requires_grad or not parameter.takes_numbers:
        what = "a Tensor that requires grad" if x.requires_grad else f"a Tensor of shape {tuple(x.shape)}"
        raise ArgumentTypeError(
            f"{op.name}: {name} is an attribute, so it cannot be {what}",
            hint=f"pass a number; or annotate {name} as an operand of the array function: `{name}: Array`",
        )
    return x.item()


def _unpack_index(x: Any) -> Any:
    """Replace the tensors in an index, which may be nested, by their arrays."""
    if isinstance(x, Tensor):
        return x.array
    if isinstance(x, list | tuple):
        return type(x)(_unpack_index(item) for item in x) if type(x) in (list, tuple) else x
    return x


def _check_index_device(op: Op, index: Any, values: list[Any]) -> None:
    """Raise DeviceError if an index is on another device than the operands; libraries would copy it, or fail."""
    parts = [part for part in (index if isinstance(index, tuple | list) else (index,)) if devices.is_array(part)]
    if parts:
        arrays = [value for value in values if devices.is_array(value)]
        _on_one_device(op, arrays + [part if part.ndim else part.reshape(1) for part in parts])


def _on_one_device(op: Op, values: list[Any]) -> list[Any]:
    """Move zero-dim CPU arrays to the device of the others, which must all be on one.

    Raises: DeviceError if they are not.
    """
    arrays = [v for v in values if hasattr(v, "dtype")]
    places = list(dict.fromkeys(devices.device_of(a) for a in arrays if a.ndim or devices.device_of(a) != devices.CPU))
    if len(places) > 1:
        names = " and ".join(map(str, places))
        raise DeviceError(
            f"{op.name}: expected all tensors to be on the same device, found {names}",
            hint="move them with .to(device)",
        )
    if not places:
        return values
    return [devices.move(v, places[0]) if hasattr(v, "dtype") else v for v in values]


def _same_dtype(op: Op, values: list[Any]) -> list[Any]:
    """Return the operands. Raises: DtypeError unless all arrays have one dtype."""
    names = list(dict.fromkeys(dtypes.dtype_of(v).name for v in values if hasattr(v, "dtype")))
    if len(names) > 1:
        raise DtypeError(
            f"{op.name}: expected operands to have the same dtype, got {' and '.join(names)}",
            hint="they must have the same dtype: convert with .to(dtype)",
        )
    return values


def _convert_array(value: Any, to: dtypes.dtype) -> Any:
    return dtypes.cast(value, to) if hasattr(value, "dtype") else value


def _convert_operand(value: Any, to: dtypes.dtype) -> Any:
    """Convert an array or a number. A number given to an integer op wraps around."""
    if hasattr(value, "dtype"):
        return dtypes.cast(value, to)
    if to.category == 1 and value is not None:
        return np.asarray(int(value)).astype(to.storage)[()]  # NumPy would raise for a number out of range
    return value
