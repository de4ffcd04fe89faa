"""Applying ops to tensors: unpack, convert dtypes, compute, record.

There is one way through here for built-in and user-defined ops alike, `apply`, its in-place form `apply_inplace`, and a
short cut that does the same for the operators of two tensors of one dtype, where a microsecond counts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tallow import devices, dtypes
from tallow.autograd.graph import (
    Output,
    check_inplace,
    edge_to,
    gradient_dtype,
    make_node,
    note_write,
    rebase,
)
from tallow.autograd.modes import mode
from tallow.autograd.views import View
from tallow.autograd.writes import holds, owner_of, unshare
from tallow.dtypes import HALVES, Array
from tallow.errors import (
    ArgumentTypeError,
    DeviceError,
    DimensionError,
    DtypeError,
    GraphError,
    OutOfMemoryError,
    ShapeError,
    TallowError,
)
from tallow.ops.quiet import hush, restore
from tallow.ops.table import Op
from tallow.tensor import Tensor, wrap

_new = Tensor.__new__
F32, F64 = dtypes.float32.storage, dtypes.float64.storage
NUMERIC = (Tensor, int, float, np.generic)


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
        """The short way, for CPU tensors of one dtype that nothing need be done to; False if this is no such call."""
        given = len(args)
        if not (op.required <= given <= op.plain and op.attributes.issuperset(kwargs)):
            return False
        if op.spread is not None and given > op.spread and not isinstance(args[op.spread], tuple | list):
            return False
        call = list(args)
        tensors: list[Tensor | None] = []
        dtype = None
        numbers = False  # beside floats they are weak; integers convert them
        for i, _ in op.operands:
            if i >= given:
                break
            x = args[i]
            if isinstance(x, Tensor):
                array = x.array
                if type(array) is not np.ndarray or (dtype is not None and dtype is not array.dtype):
                    return False
                dtype = array.dtype
                call[i] = array
                tensors.append(x)
            elif x is None and i in op.optional:
                tensors.append(None)
            elif (type(x) is float or type(x) is int) and i in op.numbers:
                tensors.append(None)
                numbers = True
            else:
                return False
        if dtype is None or (op.dtypes != "keep" and dtype in HALVES) or (numbers and dtype.kind != "f"):
            return False
        if op.dtypes == "float" and dtype.kind != "f":
            return False
        for i in op.indices:
            if i < given:
                call[i] = _unpack_index(args[i])
        self.call, self.kwargs, self.tensors, self.half = call, kwargs, tensors, None
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
        for name in op.keyword_indices & self.kwargs.keys():
            self.kwargs[name] = _unpack_index(self.kwargs[name])
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
            values = [dtypes.widen(v) if hasattr(v, "dtype") else v for v in values]
        return values


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


def _unpack_index(x: Any) -> Any:
    if isinstance(x, Tensor):
        return x.array
    if isinstance(x, list | tuple):
        return type(x)(_unpack_index(item) for item in x) if type(x) in (list, tuple) else x
    return x


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


def compute(op: Op, ready: Prepared) -> tuple[Any, Any]:
    """The op's value and its closure, with any failure told in terms of the op."""
    token = hush()
    try:
        value, backward = op.function(*ready.call, **ready.kwargs)
        half = ready.half
        if half is not None:
            value = tuple(_round(v, half) for v in value) if isinstance(value, tuple | list) else _round(value, half)
        return value, backward
    except TallowError:
        raise
    except TypeError as error:
        raise ArgumentTypeError(_failure(op, ready, error)) from error
    except IndexError as error:
        raise DimensionError(_failure(op, ready, error)) from error
    except MemoryError as error:
        raise OutOfMemoryError(_failure(op, ready, error), mend="work on smaller parts, or a smaller dtype") from error
    except (ValueError, OverflowError, np.linalg.LinAlgError) as error:
        raise ShapeError(_failure(op, ready, error)) from error
    finally:
        restore(token)


def _round(value: Any, half: dtypes.dtype) -> Any:
    return (
        dtypes.cast(np.asarray(value) if isinstance(value, np.generic) else value, half)
        if value.dtype == np.float32
        else value
    )


def _failure(op: Op, ready: Prepared, error: Exception) -> str:
    operands = ", ".join("None" if t is None else f"{tuple(t.shape)} {t.dtype.name}" for t in ready.tensors)
    return f"{op.name}: {error}; operands: {operands}"


def apply(op: Op, *args: Any, **kwargs: Any) -> Any:
    """Apply an op to tensors.

    Returns: a Tensor, or for an op with several outputs a tuple of them (of the op's `result` class if it has one).

    Raises: ShapeError, DtypeError, DeviceError, ArgumentTypeError with the op's name and its operands.
    """
    if op.view and not kwargs and op.required <= len(args) and isinstance(args[0], Tensor):
        return _apply_view(op, *args)
    ready = Prepared(op, args, kwargs)
    value, backward = compute(op, ready)
    tensors = ready.tensors
    several = isinstance(value, tuple | list)
    outputs = [_output(v, tensors) for v in (value if several else (value,))]
    if op.view and tensors[0] is not None:
        for index, output in enumerate(outputs):
            _note_view(op, tensors[0], ready.call[1:], ready.kwargs, output, index if several else None)
    if (
        mode.recording
        and backward is not None
        and any(t is not None and (t._requires_grad or t._base is not None) for t in tensors)
    ):
        _record(op.name, backward, tensors, outputs)
    if not several:
        return outputs[0]
    return tuple(outputs) if op.result is None else op.result(*outputs)


def _output(value: Any, tensors: Sequence[Tensor | None]) -> Tensor:
    """Wrap a result; one that is an operand's own array gets a view of it, so that histories stay apart."""
    if isinstance(value, np.generic):
        value = np.asarray(value)
    for t in tensors:
        if t is not None and t.array is value:
            value = value[...]
            break
    return wrap(value)


def _apply_view(op: Op, source: Tensor, *args: Any) -> Any:
    """`apply` for view ops called by position, which neither convert nor compute anything: twice as quick."""
    spread = op.spread
    if spread is not None and len(args) >= spread and not isinstance(args[spread - 1], tuple | list):
        args = (*args[: spread - 1], args[spread - 1 :])
    array = source.array
    try:
        value, backward = op.function(array, *args)
    except TallowError:
        raise
    except (TypeError, ValueError, IndexError, OverflowError) as error:
        known = {TypeError: ArgumentTypeError, IndexError: DimensionError}
        where = f"operand: {tuple(array.shape)} {source.dtype.name}"
        raise known.get(type(error), ShapeError)(f"{op.name}: {error}; {where}") from error
    several = isinstance(value, tuple)
    outputs = []
    for index, part in enumerate(value if several else (value,)):
        output = wrap(part if part is not array else part[...])
        _note_view(op, source, args, NO_KEYWORDS, output, index if several else None)
        outputs.append(output)
    if backward is not None and mode.recording and (source._requires_grad or source._base is not None):
        _record(op.name, backward, (source,), outputs)
    return tuple(outputs) if several else outputs[0]


NO_KEYWORDS: dict[str, Any] = {}


def _note_view(
    op: Op, source: Tensor, rest: Sequence[Any], kwargs: dict[str, Any], output: Tensor, index: int | None
) -> None:
    """Tell a view from which base it was made, and how. `index` says which output it is of an op with several."""
    array, base = source.array, output.array.base
    if base is None or (base is not array and base is not array.base and owner_of(array) is not owner_of(output.array)):
        return
    output._base = source if source._base is None else source._base
    output._base_node = output._base._node
    if output._inference is not source._inference:
        output._inference = source._inference
    if mode.recording:

        def make(array: Array) -> tuple[Array, Callable[[Array], Array]]:
            value, backward = op.function(array, *rest, **kwargs)
            return (value, _alone(backward)) if index is None else (value[index], _one_of(backward, value, index))

        output._view = View(make, source._view)


def _alone(backward: Any) -> Callable[..., Array]:
    """The closure of an op with one operand, as a function of one array."""

    def back(*gs: Array) -> Array:
        (entry,) = backward(*gs)
        return entry() if callable(entry) else entry

    return back


def _one_of(backward: Any, values: Sequence[Array], index: int) -> Callable[[Array], Array]:
    """The closure of an op with several outputs, for a gradient of one of them."""
    shapes, back = [v.shape for v in values], _alone(backward)

    def for_one(g: Array) -> Array:
        xp = devices.array_module(g)
        return back(*(g if i == index else xp.zeros(shape, g.dtype) for i, shape in enumerate(shapes)))

    return for_one


def _record(
    name: str, backward: Callable[..., Any], tensors: Sequence[Tensor | None], outputs: Sequence[Tensor]
) -> None:
    """Put the op on the tape, if any operand turns out to need a gradient and any output can have one."""
    edges = [None if t is None else edge_to(t) for t in tensors]
    if not any(edge is not None for edge in edges):
        return
    if any(t is not None and t._inference and holds(backward, t.array) for t in tensors):
        raise GraphError(
            f"{name}: a tensor made in inference_mode cannot be saved for backward",
            mend="clone it outside of inference_mode, or make it under no_grad instead",
        )
    if not outputs:
        return
    if len(outputs) == 1:
        array = outputs[0].array
        dtype = gradient_dtype(array)
        if dtype.kind == "f":
            outputs[0]._node = make_node(name, backward, edges, array.shape, dtype)
            outputs[0]._requires_grad = True
        return
    node = make_node(name, backward, edges, (), gradient_dtype(outputs[0].array))
    node.outputs = [(y.array.shape, gradient_dtype(y.array)) for y in outputs]
    for index, (output, (shape, dtype)) in enumerate(zip(outputs, node.outputs, strict=True)):
        if dtype.kind == "f":
            output._node, output._requires_grad = Output(node, index, shape, dtype), True


def apply_inplace(op: Op, target: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """Apply an op and write its value into the memory of its first operand.

    Raises: as `apply`, and GraphError where autograd forbids the write, DtypeError if the value's dtype does not fit,
        ShapeError if broadcasting would enlarge the target.
    """
    name = op.name + "_"
    ready = Prepared(op, (target, *args), kwargs)
    recording = mode.recording and writes_history(target, ready.tensors)
    check_inplace(target, name, recording)
    value, backward = compute(op, ready)
    _write(name, target, value, backward if recording else None)
    note_write(target)
    if recording:
        if backward is None:
            target.detach_()
        else:
            edges = [None if t is None else edge_to(t) for t in ready.tensors]
            rebase(target, name, backward, edges)
    return target


def writes_history(target: Tensor, tensors: Sequence[Tensor | None]) -> bool:
    """Whether a gradient may flow through a write: into what is written over, or out of what is written there."""
    base = target._base
    if base is not None and base._requires_grad:  # though the view of it may have been made unrecorded
        return True
    return gradient_dtype(target.array).kind == "f" and any(t is not None and t.requires_grad for t in tensors)


def _write(name: str, target: Tensor, value: Any, backward: Any) -> None:
    array = target.array
    if value.shape != array.shape:
        raise ShapeError(
            f"{name}: output with shape {tuple(array.shape)} doesn't match the broadcast shape {tuple(value.shape)}"
        )
    source = dtypes.dtype_of(value)
    if not dtypes.can_cast(source, target.dtype):
        raise DtypeError(
            f"{name}: result type {source.name} can't be cast to the desired output type {target.dtype.name}"
        )
    check_writable(target, name)
    if backward is not None:
        unshare(backward, array)
    array[...] = dtypes.cast(value, target.dtype)


def check_writable(target: Tensor, name: str) -> None:
    if not getattr(target.array.flags, "writeable", True):
        raise ShapeError(
            f"{name}: the memory cannot be written: expanded, with elements that share a place, or a file's",
            mend="clone() the tensor before writing to it",
        )


def _record_two(name: str, backward: Callable[..., Any], a: Tensor, b: Tensor | None, made: Tensor) -> None:
    """`_record` for the usual case of two operands, neither of them a view."""
    if a._base is not None or a._inference or (b is not None and (b._base is not None or b._inference)):
        _record(name, backward, (a, b), (made,))
        return
    edge_a = (a._node or a) if a._requires_grad else None
    edge_b = (b._node or b) if b is not None and b._requires_grad else None
    array = made.array
    made._node = make_node(name, backward, (edge_a, edge_b), array.shape, array.dtype)
    made._requires_grad = True


def as_operand(x: Any) -> Any:
    """What stands beside a tensor at an operator: a tensor, a number, or a NumPy array as a tensor; else None."""
    if isinstance(x, NUMERIC):
        return x
    return Tensor(x) if isinstance(x, np.ndarray) else None


def binary_operator(op: Op, plain: Callable[[Array, Array], Array] | None = None) -> Callable[[Any, Any], Any]:
    """`apply(op, a, b)` for use as an operator: quick for floats of one dtype, and NotImplemented for strangers.

    Args:
        plain: computes the op's value alone, for two float arrays or an array and a number; a ufunc as a rule.
    """
    function = op.function
    value_of = plain or (lambda a, b: function(a, b)[0])
    takes_numbers = 1 in op.numbers
    ndarray = np.ndarray
    name = op.name

    def operator(self: Tensor, other: Any) -> Any:
        a = self.array
        dtype = a.dtype
        if (dtype is not F32 and dtype is not F64) or type(a) is not ndarray:
            operand = as_operand(other)
            return NotImplemented if operand is None else apply(op, self, operand)
        if isinstance(other, Tensor):
            b = other.array
            if b.dtype is not dtype or type(b) is not ndarray:
                return apply(op, self, other)
            tracked = other._requires_grad or other._base is not None
        elif type(other) is float or (type(other) is int and takes_numbers):
            b = other
            tracked = False
        else:
            operand = as_operand(other)
            return NotImplemented if operand is None else apply(op, self, operand)
        made = _new(Tensor)
        try:
            if mode.recording and (tracked or self._requires_grad or self._base is not None):
                value, backward = function(a, b)
                made.array = value if type(value) is ndarray else np.asarray(value)
                if backward is not None:
                    _record_two(name, backward, self, None if b is other else other, made)
            else:
                value = value_of(a, b)
                made.array = value if type(value) is ndarray else np.asarray(value)
                if mode.inference:
                    made._inference = True
        except ValueError:
            return apply(op, self, other)  # fails again, and says why
        return made

    operator.__name__ = operator.__qualname__ = op.name
    operator.__doc__ = op.function.__doc__
    return operator
