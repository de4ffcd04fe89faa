"""Shape arithmetic while a graph is built: `Shape`, `Gather`, `Concat` and the like give sizes of dims, not tensors.

    Shape(x) -> Gather(0) -> Unsqueeze -> Concat(_, [64]) -> Reshape(y, _)    becomes    y.reshape((x.shape[0], 64))

A vector or scalar of integers that comes from shapes is a `Dims`: its elements are Python ints, or proxies of nodes
whose value is one.
"""

from __future__ import annotations

import operator as python
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tallow.core.creation import arange, tensor
from tallow.core.tensor import Tensor
from tallow.dtypes import Dtype, int32, int64
from tallow.dtypes import bool as bool_dtype
from tallow.fx.proxy import Proxy
from tallow.onnx.tensors import DATA_TYPES
from tallow.onnx.values import Known, OnnxProxy, OnnxTracer, SizeOf, SizeProxy

INTEGERS = {DATA_TYPES[each]: each for each in (int64, int32)}
MOST = 4096  # elements
ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {"Add": python.add, "Sub": python.sub, "Mul": python.mul}


@dataclass
class Dims:
    """Integers of which some are known.

    Attributes:
        sizes: the elements; None for the shape of `of`, whose number of dims is not known.
        is_scalar: whether it is a scalar, not a vector.
        of: the tensor whose shape it is.
        dtype: int64 or int32.
    """

    sizes: tuple[Any, ...] | None
    is_scalar: bool = False
    of: OnnxProxy | None = None
    dtype: Dtype = int64

    def element(self, index: int) -> Any:
        """Return one element, or None if there is none."""
        if self.sizes is None:
            assert self.of is not None
            return SizeOf(self.of, index)
        return self.sizes[index] if -len(self.sizes) <= index < len(self.sizes) else None

    def as_argument(self) -> Any:
        """Return an argument for an operand annotated `Ints`: a tuple of ints and proxies."""
        if self.sizes is None:
            assert self.of is not None
            return self.of.shape
        return self.sizes

    def as_tensor(self, tracer: OnnxTracer) -> Proxy:
        """Return the proxy of a node that makes a tensor of it."""
        held = self.sizes[0] if self.is_scalar and self.sizes is not None else self.as_argument()
        return tracer.create_proxy("call_function", tensor, (held,), {"dtype": self.dtype})


def shape_arithmetic(name: str, operands: Sequence[Any], attributes: dict[str, Any]) -> Any:
    """Return the result of an operator on dims, or None if it is none that is done here.

    Args:    operands: Known, Dims and proxies, at least one of them Dims unless the operator is Shape
    Returns: Dims, Known, or a proxy
    """
    if name in ("Shape", "Size"):
        return _shape(operands[0], attributes) if name == "Shape" else None
    rule = RULES.get(name)
    return None if rule is None else rule(operands, attributes)


def _shape(value: Any, attributes: dict[str, Any]) -> Any:
    if isinstance(value, Dims):
        if value.sizes is None:
            return None
        sizes: Any = () if value.is_scalar else (len(value.sizes),)
        return Known(tensor(sizes[_bounds(attributes)], dtype=int64))
    if not isinstance(value, OnnxProxy):
        return None
    bounds = _bounds(attributes)
    if isinstance(known := value.shape, tuple):
        sizes = known[bounds]
        return Known(tensor(sizes, dtype=int64)) if all(isinstance(size, int) for size in sizes) else Dims(sizes)
    return Dims(None, of=value) if bounds == slice(0, None) else None


def _bounds(attributes: dict[str, Any]) -> slice:
    return slice(attributes.get("start", 0), attributes.get("end"))


def _ints(value: Any) -> tuple[int, ...] | None:
    """Return the elements of a known tensor of integers."""
    return value.as_ints() if isinstance(value, Known) else None


def _elements(value: Any) -> Dims | None:
    """Return an operand as dims whose number is known, or None."""
    if isinstance(value, Dims):
        return None if value.sizes is None else value
    if isinstance(value, Known) and isinstance(value.value, Tensor) and value.value.ndim < 2:
        known = value.as_ints()
        return None if known is None else Dims(known, value.value.ndim == 0, dtype=value.value.dtype)
    return None


def _dtype(operands: Sequence[Any]) -> Dtype:
    """Return the dtype that dims among the operands have."""
    return next(each.dtype for each in operands if isinstance(each, Dims))


def _gather(operands: Sequence[Any], attributes: dict[str, Any]) -> Dims | None:
    data, indices = operands
    chosen = _ints(indices)
    if chosen is None or not isinstance(data, Dims) or data.is_scalar or indices.value.ndim > 1:
        return None
    found = tuple(data.element(i) for i in chosen)
    return (
        None if any(each is None for each in found) else replace(data, sizes=found, is_scalar=indices.value.ndim == 0)
    )


def _slice(operands: Sequence[Any], attributes: dict[str, Any]) -> Dims | None:
    data = operands[0]
    if not isinstance(data, Dims):
        return None
    given = [_ints(each) for each in operands[1:]] or [attributes.get(name) for name in ("starts", "ends", "axes")]
    starts, ends, axes, steps = [*given, None, None, None, None][:4]
    if starts is None or ends is None or len(starts) != 1 or (axes or (0,)) not in ((0,), (-1,)):
        return None
    step = steps[0] if steps else 1
    if not step:
        return None
    if data.sizes is not None:
        return replace(data, sizes=data.sizes[slice(starts[0], ends[0], step)])
    if step == 1 and (0 <= starts[0] <= ends[0] < MOST or -MOST < starts[0] <= ends[0] < 0):
        return replace(data, sizes=tuple(data.element(i) for i in range(starts[0], ends[0])))
    if step == 1 and -MOST < starts[0] < 0 and ends[0] >= MOST:
        return replace(data, sizes=tuple(data.element(i) for i in range(starts[0], 0)))
    return None


def _concat(operands: Sequence[Any], attributes: dict[str, Any]) -> Dims | None:
    parts = [_elements(each) for each in operands]
    if any(part is None or part.is_scalar for part in parts):
        return None
    sizes = tuple(size for part in parts if part is not None for size in part.sizes or ())
    return Dims(sizes, dtype=_dtype(operands))


def _as_vector(operands: Sequence[Any], attributes: dict[str, Any]) -> Dims | None:
    """Unsqueeze a scalar."""
    data = operands[0]
    return replace(data, is_scalar=False) if isinstance(data, Dims) and data.is_scalar else None


def _as_scalar(operands: Sequence[Any], attributes: dict[str, Any]) -> Dims | None:
    """Squeeze a vector of one element."""
    data = operands[0]
    is_one = isinstance(data, Dims) and not data.is_scalar and data.sizes is not None and len(data.sizes) == 1
    return replace(data, is_scalar=True) if is_one else None


def _reshape(operands: Sequence[Any], attributes: dict[str, Any]) -> Dims | None:
    data, shape = operands[0], _ints(operands[1]) if len(operands) > 1 else None
    if not isinstance(data, Dims) or data.sizes is None or shape is None:
        return None
    if shape in ((-1,), (len(data.sizes),)):
        return replace(data, is_scalar=False)
    return replace(data, is_scalar=True) if shape == () and len(data.sizes) == 1 else None


def _same(operands: Sequence[Any], _attributes: dict[str, Any]) -> Dims | None:
    return operands[0] if isinstance(operands[0], Dims) else None


def _cast(operands: Sequence[Any], attributes: dict[str, Any]) -> Dims | None:
    data, to = operands[0], INTEGERS.get(attributes.get("to", 0))
    return replace(data, dtype=to) if isinstance(data, Dims) and to is not None else None


def _paired(operands: Sequence[Any]) -> tuple[list[Any], list[Any], bool] | None:
    """Return the elements of two operands, broadcast, and whether the result is a scalar."""
    a, b = map(_elements, operands[:2])
    if a is None or b is None or a.sizes is None or b.sizes is None:
        return None
    count = max(len(a.sizes), len(b.sizes))
    if {len(a.sizes), len(b.sizes)} - {1, count}:
        return None
    wide = [list(each.sizes or ()) * (count if len(each.sizes or ()) == 1 else 1) for each in (a, b)]
    return wide[0], wide[1], a.is_scalar and b.is_scalar


def _arithmetic(name: str) -> Callable[[Sequence[Any], dict[str, Any]], Dims | None]:
    def compute(operands: Sequence[Any], _attributes: dict[str, Any]) -> Dims | None:
        if (pair := _paired(operands)) is None:
            return None
        sizes = tuple(_combined(name, a, b) for a, b in zip(*pair[:2], strict=True))
        return Dims(sizes, pair[2], dtype=_dtype(operands))

    return compute


def _combined(name: str, a: Any, b: Any) -> Any:
    result = ARITHMETIC[name](a, b)
    # A sum or a product of sizes is a size.
    are_sizes = name != "Sub" and all(isinstance(x, SizeProxy) or (isinstance(x, int) and x > 0) for x in (a, b))
    return SizeProxy(result.node, result.tracer) if isinstance(result, Proxy) and are_sizes else result


def _div(operands: Sequence[Any], attributes: dict[str, Any]) -> Dims | None:
    pair = _paired(operands)
    if pair is None or not all(isinstance(b, int) and b > 0 for b in pair[1]):
        return None
    if not all(isinstance(a, SizeProxy) or (isinstance(a, int) and a >= 0) for a in pair[0]):
        return None  # division of negative numbers rounds to zero in ONNX, and down in Python
    return Dims(tuple(a // b for a, b in zip(*pair[:2], strict=True)), pair[2], dtype=_dtype(operands))


def _equal(operands: Sequence[Any], attributes: dict[str, Any]) -> Known | None:
    """Compare sizes with numbers that no size is equal to, such as -1."""
    if (pair := _paired(operands)) is None:
        return None
    found = []
    for a, b in zip(*pair[:2], strict=True):
        if isinstance(a, int) and isinstance(b, int):
            found.append(a == b)
        elif any(isinstance(x, SizeProxy) and isinstance(y, int) and y < 0 for x, y in ((a, b), (b, a))):
            found.append(False)
        else:
            return None
    return Known(tensor(found[0] if pair[2] else found, dtype=bool_dtype))


def _where(operands: Sequence[Any], attributes: dict[str, Any]) -> Dims | None:
    condition = operands[0].value if isinstance(operands[0], Known) else None
    pair = _paired(operands[1:])
    if not isinstance(condition, Tensor) or condition.ndim > 1 or pair is None:
        return None
    chosen = condition.reshape(-1).tolist()
    chosen *= len(pair[0]) if len(chosen) == 1 else 1
    if len(chosen) != len(pair[0]):
        return None
    sizes = tuple(a if c else b for c, a, b in zip(chosen, *pair[:2], strict=True))
    return Dims(sizes, pair[2], dtype=_dtype(operands))


def _range(operands: Sequence[Any], attributes: dict[str, Any]) -> Proxy | None:
    bounds = [_elements(each) for each in operands]
    if any(each is None or not each.is_scalar for each in bounds):
        return None
    start, limit, step = (each.sizes[0] for each in bounds if each is not None and each.sizes is not None)
    proxy = next(each for each in (start, limit, step) if isinstance(each, Proxy))
    return proxy.tracer.create_proxy("call_function", arange, (start, limit, step), {"dtype": _dtype(operands)})


Rule = Callable[[Sequence[Any], dict[str, Any]], Any]
RULES: dict[str, Rule] = {
    "Gather": _gather,
    "Slice": _slice,
    "Concat": _concat,
    "Unsqueeze": _as_vector,
    "Squeeze": _as_scalar,
    "Reshape": _reshape,
    "Identity": _same,
    "Cast": _cast,
    **{name: _arithmetic(name) for name in ARITHMETIC},
    "Div": _div,
    "Equal": _equal,
    "Where": _where,
    "Range": _range,
}
