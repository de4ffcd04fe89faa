"""Functions that call functions: conditionals, loops and scans."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import tallow as tl
from tallow.errors import ArgumentError
from tallow.keras.functions.operands import tensor
from tallow.keras.structure import flatten, map_structure


def cond(pred: Any, true_fn: Callable[[], Any], false_fn: Callable[[], Any]) -> Any:
    """Return the result of one of two functions."""
    return true_fn() if bool(pred) else false_fn()


def switch(index: Any, branches: Sequence[Callable[..., Any]], *operands: Any) -> Any:
    """Return the result of one of several functions; an index out of range is clipped."""
    return branches[min(max(int(index), 0), len(branches) - 1)](*operands)


def while_loop(
    cond: Callable[..., Any], body: Callable[..., Any], loop_vars: Any, maximum_iterations: int | None = None
) -> Any:
    """Apply `body` to `loop_vars` as long as `cond` of them is true."""
    is_sequence = isinstance(loop_vars, list | tuple)
    state = tuple(loop_vars) if is_sequence else (loop_vars,)
    count = 0
    while (maximum_iterations is None or count < maximum_iterations) and bool(cond(*state)):
        new = body(*state)
        state = tuple(new) if isinstance(new, list | tuple) else (new,)
        count += 1
    return state if is_sequence else state[0]


def fori_loop(lower: int, upper: int, body_fun: Callable[[int, Any], Any], init_val: Any) -> Any:
    """Apply `body_fun(i, value)` for i from lower up to, but not including, upper."""
    value = init_val
    for i in range(int(lower), int(upper)):
        value = body_fun(i, value)
    return value


def map(f: Callable[[Any], Any], xs: Any) -> Any:
    """Apply `f` to each slice along the first axis, and stack the results."""
    xs = map_structure(tensor, xs)
    count = len(flatten(xs)[0])
    return _stack([f(_slice(xs, i)) for i in range(count)])


def vectorized_map(function: Callable[[Any], Any], elements: Any) -> Any:
    """Apply a function to each slice along the first axis, as `map` does."""
    return map(function, elements)


def scan(
    f: Callable[[Any, Any], tuple[Any, Any]],
    init: Any,
    xs: Any = None,
    length: int | None = None,
    reverse: bool = False,
    unroll: int = 1,
) -> tuple[Any, Any]:
    """Apply carry, y = f(carry, x) to each slice of xs; return the last carry and the stacked results.

    Args:
        length: the number of steps, if xs is None.
        unroll: accepted for Keras compatibility; it has no effect.
    """
    if xs is None and length is None:
        raise ArgumentError("scan: neither xs nor length is set", hint="pass one of them")
    xs = None if xs is None else map_structure(tensor, xs)
    count = length if xs is None else len(flatten(xs)[0])
    carry, results = init, []
    order = range(int(count or 0))
    for i in reversed(order) if reverse else order:
        carry, y = f(carry, None if xs is None else _slice(xs, i))
        results.append(y)
    return carry, _stack(results[::-1] if reverse else results)


def associative_scan(f: Callable[[Any, Any], Any], elems: Any, reverse: bool = False, axis: int = 0) -> Any:
    """Return the cumulative results of f along an axis; f gets slices of size 1 that keep the axis."""
    elems = map_structure(tensor, elems)
    count = flatten(elems)[0].shape[axis]
    order = list(range(count))[:: -1 if reverse else 1]
    parts = [map_structure(lambda x, i=i: x.narrow(axis, i, 1), elems) for i in order]
    results = parts[:1]
    for part in parts[1:]:
        results.append(f(results[-1], part))
    results = results[::-1] if reverse else results
    return map_structure(lambda *slices: tl.cat(list(slices), axis), *results)


def custom_gradient(f: Callable[..., Any]) -> Callable[..., Any]:
    """Define a function with a custom gradient.

    f(*args) returns the result and grad_fn; grad_fn(*args, upstream=gradient) returns the gradients of the args.
    """

    class Custom(tl.autograd.Function):
        @staticmethod
        def forward(ctx: Any, *args: Any) -> Any:
            result, ctx.gradient = f(*args)
            ctx.save_for_backward(*args)
            return result

        @staticmethod
        def backward(ctx: Any, *upstream: Any) -> Any:
            gradient = upstream[0] if len(upstream) == 1 else upstream
            return ctx.gradient(*ctx.saved_tensors, upstream=gradient)

    def call(*args: Any) -> Any:
        return Custom.apply(*(tensor(arg) for arg in args))

    return call


def _slice(xs: Any, index: int) -> Any:
    return map_structure(lambda x: x[index], xs)


def _stack(results: list[Any]) -> Any:
    def stack(*leaves: Any) -> Any:
        return None if leaves[0] is None else tl.stack([tensor(leaf) for leaf in leaves])

    return map_structure(stack, *results)


CORE: dict[str, Callable[..., Any]] = {
    function.__name__: function
    for function in (
        associative_scan, cond, custom_gradient, fori_loop, map, scan, switch, vectorized_map, while_loop,
    )
}  # fmt: skip
