"""Functions that the generated functions of ops call: the general way, and the common parts of the short way.

A call that costs a small op less than 3% is here, and not in each source; see `tallow.core.short_source`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tallow.core import apply as general_way
from tallow.core.arguments import CONVERTED, F32, F64
from tallow.core.overrides import after_failure, overridden
from tallow.core.tensor import Tensor
from tallow.core.write_out import write_out
from tallow.dtypes import Array
from tallow.errors import ArgumentTypeError
from tallow.kernels.table import run_into
from tallow.ops.table import Op, aliases_of
from tallow.tape.graph import Node, note_write
from tallow.tape.modes import INFERENCE, RECORDING, mode


class _Absent:
    """The default of a required parameter, for which the general way raises the error, or of one that is not None."""

    def __repr__(self) -> str:
        return "ABSENT"


ABSENT: Any = _Absent()
LITERALS = (int, float, str, bool, type(None))
# Operators whose methods PyTorch writes in Python: called as functions, they take a number as `self`.
PYTHON_OPERATORS = ("pow", "floor_divide", "remainder", "bitwise_left_shift", "bitwise_right_shift")
NO_KEYWORDS: dict[str, Any] = {}
_new, _ndarray = object.__new__, np.ndarray

# ---------------------------------------------------------------------------------------------------- the general way


def generally(op: Op, given: tuple[Any, ...], keywords: dict[str, Any], function: Any = None) -> Any:
    """Apply an op the general way; PyTorch's argument `out` may be among the keywords.

    Args:
        function: the public function that was called, for arguments that answer for it; `op.call` by default.
    """
    out = keywords.pop("out", None)
    args, kwargs = _as_called(op, given, keywords)
    try:
        value = general_way.apply_generally(op, *args, **kwargs)
    except Exception:
        return after_failure(function or op.call, tuple(args), kwargs if out is None else kwargs | {"out": out})
    return value if out is None else write_out(out, value, op.name, op.dtypes in ("same", "keep"), args)


def listed_generally(op: Op, given: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
    """Apply an op the general way whose last argument must be a list or tuple of integers."""
    last = op.names[-1]
    try:
        ints = given[len(op.names) - 1]
        kind = "several arguments" if len(given) > len(op.names) else type(ints).__name__
        if len(given) > len(op.names) or not (ints is ABSENT or isinstance(ints, tuple | list)):
            raise ArgumentTypeError(
                f"{op.name}: argument '{last}' must be tuple of ints, not {kind}",
                hint=f"pass {last} as one tuple; the method of Tensor takes them one by one, too",
            )
    except ArgumentTypeError:
        return after_failure(op.listed, given, keywords)
    return generally(op, given, keywords, op.listed)


def inplace_generally(op: Op, given: tuple[Any, ...], keywords: dict[str, Any]) -> Tensor:
    """Apply an op the general way and write into its first operand."""
    args, kwargs = _as_called(op, given, keywords)
    try:
        return general_way.inplace_generally(op, *args, **kwargs)
    except Exception:
        return after_failure(op.inplace, tuple(args), kwargs)


def optionally_inplace(op: Op, given: tuple[Any, ...], keywords: dict[str, Any], inplace: bool) -> Any:
    """Apply an op that has an argument `inplace`."""
    args, kwargs = _as_called(op, given, keywords)
    try:
        return general_way.apply_inplace(op, *args, **kwargs) if inplace else general_way.apply(op, *args, **kwargs)
    except Exception:
        return after_failure(op.optional_inplace, tuple(args), kwargs | ({"inplace": True} if inplace else {}))


def operator_generally(op: Op, self: Any, *operands: Any) -> Any:
    """Apply an operator. Return NotImplemented, so that Python asks the other type, for operands of unknown types.

    An operand whose type has no operators of its own may answer for the op.

    Raises: ArgumentTypeError for an operator that was called as a function with a number as `self`.
    """
    if op.name not in PYTHON_OPERATORS and not isinstance(self, Tensor) and isinstance(self, int | float | complex):
        raise ArgumentTypeError(f"an operator of Tensor ({op.name}) doesn't apply to a {type(self).__name__!r} object")
    converted = [general_way.as_operand(x) for x in operands]
    unknown = [x for x, known in zip(operands, converted, strict=True) if known is None]
    if not unknown:
        return op.call(*converted)
    return NotImplemented if hasattr(unknown[0], "__radd__") else overridden(op.call, operands, {})


def _as_called(op: Op, given: tuple[Any, ...], keywords: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    """Return the arguments as if only what differs from a default were given, by name after an absent one."""
    defaults = op.all_defaults
    args = list(given)
    if not defaults.keys() >= keywords.keys():  # `axis` must take the place of a `dim` that was not given
        args = _by_own_names(op, args, keywords)
    kwargs = {k: v for k, v in keywords.items() if v is not ABSENT and not _is_same(v, defaults.get(k, ABSENT))}
    while args and len(args) <= len(op.defaults):
        if args[-1] is not ABSENT and not _is_same(args[-1], op.defaults[len(args) - 1]):
            break
        args.pop()
    first = next((i for i, x in enumerate(args) if x is ABSENT), len(args))
    for name, value, default in zip(op.names[first:], args[first:], op.defaults[first:], strict=False):
        if value is not ABSENT and not _is_same(value, default):
            kwargs[name] = value
    return args[:first], kwargs


def _by_own_names(op: Op, args: list[Any], keywords: dict[str, Any]) -> list[Any]:
    """Return the positional arguments with those that keywords give under another name, which are taken out."""
    for alias, own in aliases_of(op.all_defaults).items():
        at = op.names.index(own) if own in op.names else len(args)
        if alias in keywords and at < len(args) and (args[at] is ABSENT or _is_same(args[at], op.defaults[at])):
            args[at] = keywords.pop(alias)
    return args


def _is_same(value: Any, default: Any) -> bool:
    """Return whether a value is a default, or an equal literal of the same type."""
    return value is default or (type(value) in LITERALS and type(value) is type(default) and value == default)


# -------------------------------------------------------------------------------------------------------- the results


def plain(value: Any, mode: str) -> Tensor:
    """Return a tensor without a history, of an array that no other tensor has."""
    output: Tensor = _new(Tensor)
    output.array = value if type(value) is _ndarray else np.asarray(value)
    if mode is INFERENCE:
        output._inference = True
    return output


def finish(op: Op, computed: tuple[Any, Any], operands: Sequence[Any], mode: str) -> Any:
    """Return the result of an op from what its array function returned: recorded, if an operand needs a gradient.

    Args:
        operands: tensors, numbers and None.
    """
    value, backward = computed
    if type(value) is not _ndarray:
        if not isinstance(value, np.generic):
            return general_way.outputs_of(op, value, backward, operands)
        value = np.asarray(value)
    output: Tensor = _new(Tensor)
    if op.value is None:  # else its array is a new one
        value = general_way.own_array(value, operands)
    output.array = value
    if mode is RECORDING:
        if backward is not None:
            general_way.record(op, backward, operands, output)
    elif mode is INFERENCE:
        output._inference = True
    return output


def finish_few(op: Op, computed: tuple[Any, Any], mode: str, x: Tensor, y: Any = ABSENT) -> Any:
    """Do what `finish` does, without a loop for one operand or two."""
    value, backward = computed
    is_usual = mode is RECORDING and backward is not None and type(value) is _ndarray
    if not is_usual or x._base is not None or x._inference or (op.value is None and value is x.array):
        return finish(op, computed, (x,) if y is ABSENT else (x, y), mode)
    edge = (x._node or x) if x._requires_grad else None
    edges: tuple[Any, ...]
    if y is ABSENT:
        edges = (edge,)
    elif not isinstance(y, Tensor):
        edges = edge, None
    elif y._base is None and not y._inference and (op.value is not None or value is not y.array):
        edges = edge, (y._node or y) if y._requires_grad else None
        edge = edges[1] if edge is None else edge
    else:
        return finish(op, computed, (x, y), mode)
    dtype = value.dtype
    if edge is None or not (dtype is F32 or dtype is F64):
        return finish(op, computed, (x,) if y is ABSENT else (x, y), mode)
    output: Tensor = _new(Tensor)
    output.array = value
    output._node = Node(op.name, backward, edges, value.shape, dtype, op.reads_per_operand)
    output._requires_grad = True
    return output


def view_of(op: Op, source: Tensor, array: Array, value: Any, backward: Any, rest: tuple[Any, ...] | None) -> Any:
    """Return the result of an op that makes a view of a tensor; see `views_of`, which does what this does not.

    Args:
        array: that of the tensor.
        rest: the op's further arguments while ops are recorded, else None.
    """
    if type(value) is not _ndarray or (
        (owner := value.base) is not array and (owner is None or owner is not array.base or value is array)
    ):
        return general_way.views_of(op, source, rest or (), NO_KEYWORDS, value, backward)
    output: Tensor = _new(Tensor)
    output.array = value
    base = source._base
    if base is None:
        base = source
    output._base = base
    if base._node is not None:
        output._base_node = base._node
    if source._inference:
        output._inference = True
    if rest is not None:
        output._view = op.function, rest, NO_KEYWORDS, None, source._view
        if backward is not None:
            general_way.record(op, backward, (source,), output)
    return output


def written(target: Tensor, value: Any) -> bool:
    """Write a value into the memory of a tensor. Return False if the general way has to convert it, or raise."""
    array = target.array
    if array.shape != value.shape or array.dtype is not value.dtype:
        return False
    if not array.flags.carray and not general_way.is_writable(array):
        return False
    array[...] = value
    note_write(target)
    return True


RUNTIME: dict[str, Any] = {
    "ABSENT": ABSENT,
    "CONVERTED": CONVERTED,
    "F32": F32,
    "F64": F64,
    "I64": np.dtype(np.int64),
    "INFERENCE": INFERENCE,
    "RECORDING": RECORDING,
    "Tensor": Tensor,
    "WHOLE": frozenset(map(np.dtype, (np.int64, np.bool_, np.int32, np.uint8))),
    "are_arrays": general_way.are_arrays,
    "arrays_of": general_way.arrays_of,
    "asarray": np.asarray,
    "finish": finish,
    "finish_few": finish_few,
    "generally": generally,
    "inplace_generally": inplace_generally,
    "listed_generally": listed_generally,
    "is_writable": general_way.is_writable,
    "modes": mode,
    "ndarray": np.ndarray,
    "needs_gradient": general_way.needs_gradient,
    "new": object.__new__,
    "note_write": note_write,
    "operator_generally": operator_generally,
    "optionally_inplace": optionally_inplace,
    "plain": plain,
    "run_into": run_into,
    "view_of": view_of,
    "written": written,
}
