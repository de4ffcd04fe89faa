"""ONNX operators that run graphs: If, Loop, Scan.

A graph arrives as a callable of its inputs that returns one value or a tuple; the values that it reads from outside are
bound. Loops are Python's, so they can be interrupted.

Source:  https://onnx.ai/onnx/operators, opset 26
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import count
from typing import Any

import tallow as tl
from tallow import Tensor
from tallow.errors import ArgumentError, GraphError
from tallow.onnx.operators.registry import operator
from tallow.onnx.tensors import DTYPES

Body = Callable[..., Any]


@operator("If", since=1, whole=True)
def if_(cond: Tensor, *, then_branch: Body, else_branch: Body, outputs: int = 1) -> Any:
    """Return the outputs of one of two graphs."""
    return outputs_of((then_branch if bool(cond) else else_branch)(), outputs)


def outputs_of(results: Any, outputs: int) -> Any:
    """Return the outputs that a node has of what its graph returns: one value, or a tuple."""
    return _unpacked(_tuple(results), outputs)


@operator("Loop", since=1, whole=True)
def loop(
    trip_count: Tensor | None = None,
    condition: Tensor | None = None,
    *initial: Any,
    body: Body,
    outputs: int = 1,
    max_trips: int | None = None,
) -> Any:
    """Run a graph until it says so, or `trip_count` times.

    The graph takes the number of the iteration, the condition and the values that are carried along; it returns the
    condition, those values, and further ones, which are stacked over the iterations.

    Raises:  ArgumentError without both a trip count and a condition: such a loop has no end; GraphError after
             `max_trips` iterations
    """
    if trip_count is None and condition is None:
        raise ArgumentError("Loop: it has neither a trip count nor a condition, so it has no end")
    iterations = count() if trip_count is None else range(int(trip_count))
    goes_on = condition is None or bool(condition)
    carried = tuple(initial)
    scanned: list[list[Any]] = []
    for i in iterations:
        if not goes_on:
            break
        if max_trips is not None and i >= max_trips:
            raise GraphError(
                f"Loop: it goes on after {max_trips} iterations", hint="load the model with more max_trips"
            )
        proceed, *results = _tuple(body(tl.tensor(i), tl.tensor(goes_on), *carried))
        carried, parts = tuple(results[: len(initial)]), results[len(initial) :]
        scanned = scanned or [[] for _ in parts]
        for values, part in zip(scanned, parts, strict=True):
            values.append(part)
        goes_on = bool(proceed)
    stacks = [tl.stack(values) for values in scanned] or [_none_of(body, len(initial) + 1 + i) for i in range(outputs)]
    return _unpacked((*carried, *stacks), outputs)


@operator("Scan", since=9, whole=True)
def scan(
    *operands: Any,
    body: Body,
    num_scan_inputs: int,
    scan_input_axes: Sequence[int] = (),
    scan_input_directions: Sequence[int] = (),
    scan_output_axes: Sequence[int] = (),
    scan_output_directions: Sequence[int] = (),
    outputs: int = 1,
) -> Any:
    """Run a graph for each slice of the last `num_scan_inputs` operands; carry the others along.

    Directions of 1 go from the end to the beginning.

    Raises:  ArgumentError if the operands do not have the same number of slices
    """
    carried, inputs = operands[: len(operands) - num_scan_inputs], operands[len(operands) - num_scan_inputs :]
    axes = tuple(scan_input_axes) or (0,) * num_scan_inputs
    columns = [list(tl.unbind(x, axis)) for x, axis in zip(inputs, axes, strict=True)]
    if len({len(column) for column in columns}) != 1:
        raise ArgumentError(
            f"Scan: its inputs have {[len(column) for column in columns]} slices; expected as many each"
        )
    columns = [_directed(column, scan_input_directions, i) for i, column in enumerate(columns)]
    scanned: list[list[Any]] = []
    state = tuple(carried)
    for slices in zip(*columns, strict=True):
        results = _tuple(body(*state, *slices))
        state, parts = results[: len(carried)], results[len(carried) :]
        scanned = scanned or [[] for _ in parts]
        for values, part in zip(scanned, parts, strict=True):
            values.append(part)
    stacks = [
        tl.stack(_directed(values, scan_output_directions, i), scan_output_axes[i] if i < len(scan_output_axes) else 0)
        for i, values in enumerate(scanned)
    ]
    return _unpacked((*state, *(stacks or [_none_of(body, len(carried) + i) for i in range(outputs)])), outputs)


@operator("Scan", since=8, until=8, whole=True)
def scan_batches(
    sequence_lens: Tensor | None = None,
    *operands: Any,
    body: Body,
    num_scan_inputs: int,
    directions: Sequence[int] = (),
    outputs: int = 1,
) -> Any:
    """Scan each batch, dim 0 of all operands, along dim 1.  Raises: ArgumentError for `sequence_lens`"""
    if sequence_lens is not None:
        raise ArgumentError("Scan: sequence_lens is not supported", hint="export the model with opset 9 or newer")
    batches = [
        _tuple(
            scan(
                *(each[i] for each in operands),
                body=body,
                num_scan_inputs=num_scan_inputs,
                scan_input_directions=directions,
                outputs=outputs,
            )
        )
        for i in range(len(operands[0]))
    ]
    return _unpacked(tuple(tl.stack(list(each)) for each in zip(*batches, strict=True)), outputs)


def _directed(values: list[Any], directions: Sequence[int], number: int) -> list[Any]:
    return values[::-1] if number < len(directions) and directions[number] else values


def _tuple(results: Any) -> tuple[Any, ...]:
    return results if isinstance(results, tuple) else (results,)


def _unpacked(results: Sequence[Any], outputs: int) -> Any:
    """Return the outputs that are asked for: one value, or a tuple."""
    return results[0] if outputs == 1 else tuple(results[:outputs])


def _none_of(body: Body, number: int) -> Tensor:
    """Return the stack of no values of an output of a graph, whose type says the dtype and the sizes of dims."""
    module: Any = body.func if isinstance(body, partial) else body
    types = getattr(module, "meta", {}).get("outputs", ())
    declared = types[number].tensor_type if number < len(types) and types[number] is not None else None
    dims = declared.shape.dim if declared is not None and declared.shape is not None else ()
    dtype = DTYPES.get(declared.elem_type) if declared is not None else None
    return tl.empty((0, *(dim.dim_value or 0 for dim in dims)), dtype=dtype)
