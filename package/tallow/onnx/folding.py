"""Compute the results of operators whose operands are known when a file is loaded."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, NamedTuple

from tallow.autograd import no_grad
from tallow.core.tensor import Tensor
from tallow.onnx.examples import FAILURES
from tallow.onnx.operators.registry import Operator
from tallow.onnx.values import Known, Value

CODES = "DequantizeLinear"
FEW = 1 << 16  # elements that a result may have, however few its operands have


class Folded(NamedTuple):
    """The outputs of an operator, and whether they are weights."""

    values: list[Any]
    trains: bool


def folded(
    operator: Operator, operands: Sequence[Value], attributes: dict[str, Any], uses: Sequence[int], left: int
) -> Folded | None:
    """Return the outputs if all operands are known, or None.

    A weight that other nodes use too stays as it is: two copies of it would train apart. A result that has more
    elements than its operands is left to the run.

    Args:
        uses: how often the graph uses each operand
        left: the most elements that the results may have
    """
    known = [value for value in operands if isinstance(value, Known)]
    if len(known) < len(operands) or any(value.trains and count > 1 for value, count in zip(known, uses, strict=True)):
        return None
    if not all(value.value is None or isinstance(value.value, Tensor) for value in known):
        return None
    arguments = [_argument(operator, i, value) for i, value in enumerate(known)]
    most = min(left, max(FEW, sum(value.value.numel() for value in known if value.value is not None)))
    try:
        size = _size(operator, arguments, attributes)
        if size is None and prod(value.numel() for value in arguments if isinstance(value, Tensor)) > FEW:
            return None
        if size is not None and size > most:
            return None
        with no_grad():
            results = operator.function(*arguments, **attributes)
    except FAILURES:
        return None  # the node raises it when it runs, where it may never be reached
    values = list(results) if isinstance(results, tuple) else [results]
    if not all(value is None or isinstance(value, Tensor) for value in values):
        return None
    trains = any(value.trains for value in known) or operator.name == CODES  # whose scales are no weights
    return Folded(values, trains and values[0].dtype.is_floating_point and values[0].ndim > 0)


def _argument(operator: Operator, number: int, value: Known) -> Any:
    name = operator.operands[number] if number < len(operator.operands) else ""
    ints = value.as_ints() if name in operator.ints else None
    return value.value if ints is None else ints


def _size(operator: Operator, arguments: Sequence[Any], attributes: dict[str, Any]) -> int | None:
    """Return the number of elements of the results, without computing them; None if the values decide it."""
    shapes = [value.to("meta") if isinstance(value, Tensor) else value for value in arguments]
    try:
        results = operator.function(*shapes, **attributes)
    except FAILURES:
        return None
    values = results if isinstance(results, tuple) else (results,)
    return sum(value.numel() for value in values if isinstance(value, Tensor))
