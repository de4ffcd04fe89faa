"""Functions that call functions: choices, loops and scans."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import tallow as tl
from tallow.errors import ArgumentError
from tallow.keras.functions.operands import tensor
from tallow.keras.structure import flatten, map_structure


def cond(pred: Any, true_fn: Callable[[], Any], false_fn: Callable[[], Any]) -> Any:
    """What one of two functions gives."""
    return true_fn() if bool(pred) else false_fn()


def switch(index: Any, branches: Sequence[Callable[..., Any]], *operands: Any) -> Any:
    """What one of several functions gives; an index beyond them takes the nearest."""
    return branches[min(max(int(index), 0), len(branches) - 1)](*operands)


def while_loop(
    cond: Callable[..., Any], body: Callable[..., Any], loop_vars: Any, maximum_iterations: int | None = None
) -> Any:
    """`loop_vars` after `body` for as long as `cond` of them holds."""
    several = isinstance(loop_vars, list | tuple)
    state = tuple(loop_vars) if several else (loop_vars,)
    count = 0
    while (maximum_iterations is None or count < maximum_iterations) and bool(cond(*state)):
        new = body(*state)
        state = tuple(new) if isinstance(new, list | tuple) else (new,)
        count += 1
    return state if several else state[0]


def fori_loop(lower: int, upper: int, body_fun: Callable[[int, Any], Any], init_val: Any) -> Any:
    """`body_fun(i, value)` for i from lower up to upper."""
    value = init_val
    for i in range(int(lower), int(upper)):
        value = body_fun(i, value)
    return value


def map(f: Callable[[Any], Any], xs: Any) -> Any:
    """`f` of each slice along the first axis, stacked."""
    xs = map_structure(tensor, xs)
    count = len(flatten(xs)[0])
    return _stacked([f(_at(xs, i)) for i in range(count)])


def vectorized_map(function: Callable[[Any], Any], elements: Any) -> Any:
    return map(function, elements)


def scan(
    f: Callable[[Any, Any], tuple[Any, Any]],
    init: Any,
    xs: Any = None,
    length: int | None = None,
    reverse: bool = False,
    unroll: int = 1,
) -> tuple[Any, Any]:
    """carry, y = f(carry, x) for each slice of xs; the last carry, and the results stacked.

    Args:
        length: how many times, if there is no xs.
        unroll: taken for Keras' sake; the steps are computed one by one in any case.
    """
    if xs is None and length is None:
        raise ArgumentError("scan: neither xs nor length", mend="give one of them")
    xs = None if xs is None else map_structure(tensor, xs)
    count = length if xs is None else len(flatten(xs)[0])
    carry, results = init, []
    order = range(int(count or 0))
    for i in reversed(order) if reverse else order:
        carry, y = f(carry, None if xs is None else _at(xs, i))
        results.append(y)
    return carry, _stacked(results[::-1] if reverse else results)


def associative_scan(f: Callable[[Any, Any], Any], elems: Any, reverse: bool = False, axis: int = 0) -> Any:
    """The first element, f(first, second), f(that, third), ...; f works on slices with the axis in them."""
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
    """A function whose gradient is what it says: f(*args) gives the result and grad_fn, and grad_fn(*args,
    upstream=gradient) those of the args.
    """

    class Custom(tl.autograd.Function):
        @staticmethod
        def forward(ctx: Any, *args: Any) -> Any:
            result, ctx.gradient = f(*args)
            ctx.save_for_backward(*args)
            return result

        @staticmethod
        def backward(ctx: Any, *upstream: Any) -> Any:
            given = upstream[0] if len(upstream) == 1 else upstream
            return ctx.gradient(*ctx.saved_tensors, upstream=given)

    def call(*args: Any) -> Any:
        return Custom.apply(*(tensor(arg) for arg in args))

    return call


def _at(xs: Any, index: int) -> Any:
    return map_structure(lambda x: x[index], xs)


def _stacked(results: list[Any]) -> Any:
    def stacked(*leaves: Any) -> Any:
        return None if leaves[0] is None else tl.stack([tensor(leaf) for leaf in leaves])

    return map_structure(stacked, *results)


CORE: dict[str, Callable[..., Any]] = {
    function.__name__: function
    for function in (
        associative_scan, cond, custom_gradient, fori_loop, map, scan, switch, vectorized_map, while_loop,
    )
}  # fmt: skip
