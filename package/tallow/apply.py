"""Applying ops to tensors: take the arguments, compute, record.

There is one way through here for built-in and user-defined ops alike, `apply`, its in-place form `apply_inplace`, and a
short cut that does the same for the operators of two tensors of one dtype, where a microsecond counts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tallow import devices, dtypes
from tallow.arguments import F32, F64, Prepared
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
from tallow.dtypes import Array
from tallow.errors import (
    ArgumentTypeError,
    DimensionError,
    DtypeError,
    GraphError,
    OutOfMemoryError,
    ShapeError,
    TallowError,
)
from tallow.ops.quiet import hush, restore
from tallow.ops.table import Op
from tallow.precision import LOWERED, prepare
from tallow.tensor import Tensor, wrap

_new = Tensor.__new__
NUMERIC = (Tensor, int, float, np.generic)


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
    if devices.SEVERAL and (other := devices.beside(args)) is not None:
        with other:
            return apply(op, *args, **kwargs)
    if op.view and not kwargs and op.required <= len(args) and isinstance(args[0], Tensor):
        return _apply_view(op, *args)
    ready = Prepared(op, args, kwargs) if mode.autocast is None else prepare(mode.autocast, op, args, kwargs)
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
    if devices.SEVERAL and (other := devices.beside((target,))) is not None:
        with other:
            return apply_inplace(op, target, *args, **kwargs)
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


def is_writable(array: Array) -> bool:
    """Whether each element has a place of its own. NumPy knows; of other arrays the strides tell."""
    known = getattr(array.flags, "writeable", None)
    if known is not None or array.flags.c_contiguous:
        return known is not False
    extent = array.itemsize  # bytes from the first to the last element, over the dims with smaller steps
    for step, size in sorted((abs(s), n) for s, n in zip(array.strides, array.shape, strict=True) if n > 1):
        if step < extent:
            return False
        extent += step * (size - 1)
    return True


def check_writable(target: Tensor, name: str) -> None:
    if not is_writable(target.array):
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
    is_lowered = name in LOWERED

    def operator(self: Tensor, other: Any) -> Any:
        a = self.array
        dtype = a.dtype
        if (
            (dtype is not F32 and dtype is not F64)
            or type(a) is not ndarray
            or (is_lowered and mode.autocast is not None)
        ):
            operand = as_operand(other)
            return NotImplemented if operand is None else apply(op, self, operand)
        if isinstance(other, Tensor):
            b = other.array
            if b.dtype is not dtype or type(b) is not ndarray:
                return apply(op, self, other)
            tracked = other._requires_grad or other._base is not None
        elif takes_numbers and (type(other) is float or type(other) is int):
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
