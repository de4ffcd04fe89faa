"""Apply ops to tensors: prepare the arguments, compute, record.

Built-in and custom ops go the same way: `apply`, or `apply_inplace` to write into the first operand. Both call the op's
own function, see `tallow.core.short_way`. It hands the calls that need more than an unpacking of NumPy arrays to the
general way, which is here, and uses `record` itself.

An op is recorded by a node that holds its closure and an edge to each operand; see `tallow.tape.graph`. Nothing is
recorded unless an operand needs a gradient, so inference keeps no arrays alive.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tallow import devices, dtypes
from tallow.core.arguments import F32, F64, Prepared
from tallow.core.autocast import prepare
from tallow.core.half_precision import round_value
from tallow.core.tensor import Tensor, from_array
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
from tallow.ops.complex_rules import recorded_closure
from tallow.ops.float_warnings import restore_warnings, suppress_warnings
from tallow.ops.table import Op
from tallow.tape.graph import (
    Node,
    Output,
    check_inplace,
    edge_to,
    gradient_dtype,
    note_write,
    rebase,
)
from tallow.tape.modes import is_exporting, mode
from tallow.tape.saved import is_saved
from tallow.tape.writes import owner_of

_new: Callable[..., Any] = object.__new__
_ndarray = np.ndarray
NUMERIC = (Tensor, int, float, complex, np.generic)


def compute(op: Op, ready: Prepared) -> tuple[Any, Any]:
    """Return an op's value and its closure.

    Raises: errors of tallow in place of NumPy's, which name the op and its operands.
    """
    token = suppress_warnings()
    try:
        value, backward = op.function(*ready.call, **ready.kwargs)
        return value if ready.half is None else round_value(value, ready.half), backward
    except TallowError:
        raise
    except TypeError as error:
        raise ArgumentTypeError(_failure(op, ready, error)) from error
    except IndexError as error:
        raise DimensionError(_failure(op, ready, error)) from error
    except MemoryError as error:
        raise OutOfMemoryError(_failure(op, ready, error), hint="work on smaller parts, or a smaller dtype") from error
    except (ValueError, OverflowError, np.linalg.LinAlgError) as error:
        raise ShapeError(_failure(op, ready, error)) from error
    finally:
        restore_warnings(token)


def _failure(op: Op, ready: Prepared, error: Exception) -> str:
    tensors = [t for t in ready.tensors if t is not None]
    operands = ", ".join(f"{tuple(t.shape)} {t.dtype.name}" for t in tensors)
    reason = str(error).partition(" with shapes ")[0]  # of NumPy's error, which repeats the operands
    if "broadcast" in reason:
        reason = _mismatch([x.shape for x in ready.call if hasattr(x, "shape")]) or reason
    reason = reason.replace(" is out of bounds for axis ", " is out of bounds for dimension ")
    return f"{op.name}: {reason}; operands: {operands}"


def _mismatch(shapes: list[tuple[int, ...]]) -> str | None:
    """Return where two shapes do not broadcast, in PyTorch's words; None if they do."""
    rank = max(map(len, shapes), default=0)
    for dim in reversed(range(rank)):
        sizes = [shape[dim - rank] for shape in shapes if len(shape) >= rank - dim]
        wide = dict.fromkeys(n for n in sizes if n != 1)
        if len(wide) > 1:
            a, b, *_ = wide
            return f"the size of tensor a ({a}) must match the size of tensor b ({b}) at non-singleton dimension {dim}"
    return None


def apply(op: Op, *args: Any, **kwargs: Any) -> Any:
    """Apply an op to tensors, by its function.

    Returns: a Tensor, or for an op with several outputs a tuple of them (of the op's `result` class if it has one).

    Raises: ShapeError, DtypeError, DeviceError, ArgumentTypeError with the op's name and its operands.
    """
    function = op.call or apply_generally.__get__(op)
    return function(*args, **kwargs)


def apply_generally(op: Op, *args: Any, **kwargs: Any) -> Any:
    """Apply an op to any tensors. As `apply`, which calls this for what the op's own function does not handle."""
    if mode.batching is not None and (result := mode.batching.op(op, args, kwargs)) is not NotImplemented:
        return result
    if devices.MULTI_DEVICE and (guard := devices.guard_for(args)) is not None:
        with guard:
            return apply_generally(op, *args, **kwargs)
    ready = Prepared(op, args, kwargs) if mode.autocast is None else prepare(mode.autocast, op, args, kwargs)
    value, backward = compute(op, ready)
    tensors = ready.tensors
    if op.view and tensors[0] is not None:
        result = views_of(op, tensors[0], ready.call[1:], ready.kwargs, value, backward)
    else:
        result = outputs_of(op, value, backward, tensors)
    if mode.tracer is not None:
        mode.tracer.op(op, (args, kwargs), ready, value, backward, result)
    return result


def outputs_of(op: Op, value: Any, backward: Any, operands: Sequence[Any]) -> Any:
    """Return the result of an op: tensors, recorded if one of the operands, tensors and others, needs a gradient."""
    several = type(value) is tuple or isinstance(value, tuple | list)
    outputs, inference = [], mode.inference
    own, may_record = set(), False  # in one loop, which takes less time than to ask for each output
    for x in operands:
        if isinstance(x, Tensor):
            own.add(id(x.array))
            may_record = may_record or x._requires_grad or x._base is not None
    for array in value if several else (value,):
        output = _new(Tensor)
        output.array = array if type(array) is _ndarray and id(array) not in own else own_array(array, operands)
        if inference:
            output._inference = True
        outputs.append(output)
    if backward is not None and may_record and mode.recording:
        recorded = outputs if op.differentiable is None else outputs[: op.differentiable]
        _record(op, backward, operands, recorded)
    if not several:
        return outputs[0]
    return tuple(outputs) if op.result is None else op.result(*outputs)


def needs_gradient(operands: Sequence[Any]) -> bool:
    """Return whether a gradient may flow to any tensor among the operands; for a view, `edge_to` decides."""
    for x in operands:  # noqa: SIM110 - a generator takes longer
        if isinstance(x, Tensor) and (x._requires_grad or x._base is not None):
            return True
    return False


def is_recorded(*tensors: Tensor | None) -> bool:
    """Return whether an op on these tensors is recorded for backward, unless it has no derivative."""
    if is_exporting():
        return True  # an exported graph may be trained
    return mode.recording and needs_gradient(tensors)


def arrays_of(tensors: Any) -> list[Array] | None:
    """Return the NumPy arrays of a list of tensors; None if they are not of one dtype, or halves."""
    if type(tensors) is not list and type(tensors) is not tuple:
        return None
    arrays: list[Array] = []
    dtype = None
    for t in tensors:
        if not isinstance(t, Tensor) or type(array := t.array) is not _ndarray:
            return None
        if array.dtype is not dtype:
            if dtype is not None:
                return None
            dtype = array.dtype
        arrays.append(array)
    is_float = dtype is F32 or dtype is F64  # quicker than the lookup
    return arrays if is_float or (dtype is not None and dtype not in dtypes.HALVES) else None


def are_arrays(index: tuple[Any, ...]) -> bool:
    """Return whether an index has NumPy arrays only, and None."""
    for part in index:  # noqa: SIM110 - a generator takes longer
        if type(part) is not np.ndarray and part is not None:
            return False
    return True


def own_array(value: Any, operands: Sequence[Any]) -> Array:
    """Return the array of an output of an op on these tensors and others.

    An op may return an operand's own array, such as `x.contiguous()`. The output then gets a view of it: two tensors
    with different histories must not share one array object, by which views and writes are recognised.
    """
    if type(value) is not np.ndarray and isinstance(value, np.generic):
        return np.asarray(value)
    for x in operands:
        if isinstance(x, Tensor) and x.array is value:
            return value[...]
    return value


def views_of(op: Op, source: Tensor, rest: Sequence[Any], kwargs: dict[str, Any], value: Any, backward: Any) -> Any:
    """Return the result of an op that makes views of its first operand: a tensor, or several.

    A view notes which tensor it is a view of, and how it was made. After an in-place write to the base, the view's
    history is out of date; `refresh_view` makes a new one by making the view again.
    """
    array, recording, inference = source.array, mode.recording, mode.inference
    several = type(value) is tuple or isinstance(value, list)
    parent = source if source._base is None else source._base
    node, of_array, of_source, is_inference = parent._node, array.base, source._view, source._inference
    outputs = []
    for index, part in enumerate(value if several else (value,)):
        output = _new(Tensor)
        output.array = part = part if type(part) is _ndarray and part is not array else own_array(part, (source,))
        outputs.append(output)
        base = part.base
        if base is not None and (base is array or base is of_array or owner_of(array) is owner_of(part)):
            output._base = parent
            if node is not None:
                output._base_node = node
            if is_inference:
                output._inference = True
            if recording:
                output._view = (op.function, rest, kwargs, index if several else None, of_source)
        elif inference:  # the op has copied after all, such as `reshape` of a transposed tensor
            output._inference = True
    if backward is not None and recording and (source._requires_grad or source._base is not None):
        _record(op, backward, (source,), outputs)
    if not several:
        return outputs[0]
    return tuple(outputs) if op.result is None else op.result(*outputs)


def _record(op: Op, backward: Callable[..., Any], operands: Sequence[Any], outputs: Sequence[Tensor]) -> None:
    """Record an op: make the outputs point to a new node, if any operand needs a gradient and any output can have one.

    `edge_to` decides for each operand, because it first renews the history of a view whose base was written.

    Args:
        operands: tensors, and what has no gradient, such as numbers.
    """
    edges: list[Any] = []
    is_constant = True
    for x in operands:
        edge = edge_to(x) if isinstance(x, Tensor) else None
        edges.append(edge)
        if edge is not None:
            is_constant = False
    if is_constant:
        return
    for x in operands:
        if isinstance(x, Tensor) and x._inference and is_saved(x.array, backward):
            raise GraphError(
                f"{op.name}: a tensor made in inference_mode cannot be saved for backward",
                hint="clone it outside of inference_mode, or make it under no_grad instead",
            )
    if not outputs:
        return
    backward = recorded_closure(op.name, backward, [x.array for x in (*operands, *outputs) if isinstance(x, Tensor)])
    if len(outputs) == 1:
        array = outputs[0].array
        dtype = gradient_dtype(array)
        if dtype.kind in "fc":
            outputs[0]._node = Node(op.name, backward, edges, array.shape, dtype, op.reads_per_operand)
            outputs[0]._requires_grad = True
        return
    node = Node(op.name, backward, edges, (), gradient_dtype(outputs[0].array), op.reads_per_operand)
    node.outputs = []
    for index, output in enumerate(outputs):
        shape, dtype = output.array.shape, gradient_dtype(output.array)
        node.outputs.append((shape, dtype))
        if dtype.kind in "fc":
            output._node, output._requires_grad = Output(node, index, shape, dtype), True


def apply_inplace(op: Op, target: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """Apply an op to tensors and write into the first, by its function. Raises: as `inplace_generally`."""
    function = op.inplace or inplace_generally.__get__(op)
    return function(target, *args, **kwargs)


def inplace_generally(op: Op, target: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """Apply an op and write its value into the memory of its first operand.

    The op itself is the same as out of place; only what happens with its value differs. So every op has an in-place
    form with the same gradient.

    Raises: as `apply`, and GraphError where autograd forbids the write, DtypeError if the value's dtype cannot be cast
        to the target's, ShapeError if broadcasting would enlarge the target.
    """
    if mode.batching is not None and mode.batching.inplace(op, target, args, kwargs) is not NotImplemented:
        return target
    if devices.MULTI_DEVICE and (guard := devices.guard_for((target,))) is not None:
        with guard:
            return inplace_generally(op, target, *args, **kwargs)
    name = op.name + "_"
    ready = Prepared(op, (target, *args), kwargs)
    recording = mode.recording and writes_history(target, ready.tensors)
    check_inplace(target, name, recording)
    if recording:
        _detach_operands(ready, target.array)
    value, backward = compute(op, ready)
    _write(name, target, value)
    note_write(target)
    if recording:
        if backward is None:
            target.detach_()  # an op without a derivative: no gradient flows through what it wrote
        else:
            edges = [None if t is None else edge_to(t) for t in ready.tensors]
            backward = recorded_closure(op.name, backward, [target.array, value])
            rebase(target, name, backward, edges, op.reads_per_operand)
    if mode.tracer is not None:
        mode.tracer.inplace(op, target, (args, kwargs), ready, value, backward if recording else None)
    return target


def _detach_operands(ready: Prepared, array: Array) -> None:
    """Replace the operands that share memory with `array` by copies.

    The op's closure may hold an operand, to compute a gradient from the value that it has now. Once the result is
    written to `array`, only a copy still has that value.
    """
    owner = owner_of(array)
    for i, operand in enumerate(ready.call):
        if devices.is_array(operand) and owner_of(operand) is owner:
            ready.call[i] = operand.copy()


def writes_history(target: Tensor, tensors: Sequence[Tensor | None]) -> bool:
    """Return whether a write changes the history: a gradient may flow to the former value, or to what is written."""
    base = target._base
    if base is not None and base._requires_grad:  # even if the view was made under no_grad
        return True
    return gradient_dtype(target.array).kind in "fc" and any(t is not None and t.requires_grad for t in tensors)


def _write(name: str, target: Tensor, value: Any) -> None:
    """Write an op's value into the target's memory."""
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
    array[...] = dtypes.cast(value, target.dtype)


def is_writable(array: Array) -> bool:
    """Return whether the memory may be written, and each element has its own. Writes to device "meta" are dropped."""
    if type(array) is not _ndarray and devices.device_type_of(array) == "meta":
        return True
    return getattr(array.flags, "writeable", True) and not has_overlap(array)  # CuPy has no such flag


def has_overlap(array: Array) -> bool:
    """Return whether elements of an array share memory, by its strides. NumPy's flag says nothing about it."""
    if array.flags.c_contiguous:
        return False
    # From the innermost dim outwards: with a step beyond the extent of the inner dims, elements cannot overlap.
    dims = sorted((abs(s), n) for s, n in zip(array.strides, array.shape, strict=True) if n > 1)
    extent = array.itemsize  # bytes from the first to the last element, over the dims with smaller steps
    is_certain = True
    for step, size in dims:
        is_certain = is_certain and step >= extent
        extent += step * (size - 1)
    if is_certain:
        return False
    if not dims[0][0] or array.size * array.itemsize > extent:
        return True
    places = np.zeros(1, np.int64)  # interleaved dims, such as steps of 2 and 3: no more places than the memory has
    for step, size in dims:
        places = np.add.outer(places, step * np.arange(size)).reshape(-1)
    places.sort()
    return bool((np.diff(places) < array.itemsize).any())


def check_writable(target: Tensor, name: str) -> None:
    """Raise ShapeError if the target's memory cannot be written."""
    if is_writable(target.array):
        return
    if has_overlap(target.array):
        raise ShapeError(
            f"{name}: unsupported operation: more than one element of the written-to tensor refers to a single memory "
            "location, as after expand()",
            hint="clone() the tensor before writing to it",
        )
    raise ShapeError(
        f"{name}: the memory cannot be written: it is read-only, such as a mapped file",
        hint="clone() the tensor before writing to it",
    )


def record(op: Op, backward: Callable[..., Any], operands: Sequence[Any], output: Tensor) -> None:
    """Record an op with one output, as `_record`. Faster in the usual case: no views, and no halves."""
    edges: list[Any] = []
    is_constant = True
    for x in operands:
        if not isinstance(x, Tensor):
            edges.append(None)
        elif x._base is not None or x._inference:
            _record(op, backward, operands, (output,))
            return
        elif x._requires_grad:
            is_constant = False
            edges.append(x._node or x)
        else:
            edges.append(None)
    if is_constant:
        return
    array = output.array
    dtype = array.dtype
    if dtype is F32 or dtype is F64:
        output._node = Node(op.name, backward, edges, array.shape, dtype, op.reads_per_operand)
        output._requires_grad = True
    else:
        _record(op, backward, operands, (output,))


def as_operand(x: Any) -> Any:
    """Return the other operand of an operator: a tensor, a number, or a NumPy array as a tensor; None for other types.

    The operator returns NotImplemented for None, so that Python asks the other type.
    """
    if isinstance(x, NUMERIC):
        return x
    return from_array(x) if isinstance(x, np.ndarray) else None
