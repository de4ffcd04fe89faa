"""A call of vmap: it computes ops that get batched tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tallow import dtypes
from tallow.autograd.api import derived_gradients, grad
from tallow.core.apply import apply, apply_inplace
from tallow.core.tensor import Tensor
from tallow.core.trees import filled, leaves, map_leaves
from tallow.errors import ArgumentError, DtypeError, GraphError, ShapeError, UnsupportedError, warn
from tallow.functions.batching import product_rules as product_rules
from tallow.functions.batching import shape_rules as shape_rules
from tallow.functions.batching.rules import RULES, Call
from tallow.functions.batching.tensors import (
    Batched,
    BatchedArray,
    BatchError,
    aligned,
    batched,
    element_of,
    in_batches,
    in_levels,
    innermost,
    levels_of,
    repeated,
)
from tallow.ops.filling import copy
from tallow.ops.joining import stack
from tallow.ops.table import Op
from tallow.tape.modes import mode

_warned: set[str] = set()


class Level:
    """One call of vmap.

    Attributes:
        size: the number of elements of the batch.
        outer: the call in whose function this one was made.
        depth: 1 for the outermost.
        warns: whether to warn of an op without a rule: not while a pass takes a batch of seeds, of which users of
            Jacobians know nothing.
        may_draw: whether the function may draw random numbers.
    """

    warns = True

    def __init__(self, size: int, may_draw: bool = False) -> None:
        self.size, self.may_draw = size, may_draw
        self.outer: Level | None = mode.batching
        self.depth: int = 1 if self.outer is None else self.outer.depth + 1

    def __enter__(self) -> Level:
        mode.batching = self
        return self

    def __exit__(self, *exc_info: object) -> None:
        mode.batching = self.outer

    def check_draw(self) -> None:
        """Raise ArgumentError if this call or one around it refuses functions that draw random numbers."""
        if not self.may_draw:
            raise ArgumentError(
                "vmap: the function draws random numbers",
                hint="pass randomness='different', or 'same' for the same numbers in each element",
            )
        if self.outer is not None:
            self.outer.check_draw()

    def made(self, parts: Sequence[Any], dims: Sequence[int | None]) -> list[Any]:
        """Return tensors whose first dim is the batch dim as batches; those whose dim is None as they are."""
        return [x if dim is None else element_of(x, self) for x, dim in zip(parts, dims, strict=True)]

    def op(self, op: Op, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        """Return the result of an op; NotImplemented if no argument is batched."""
        level = innermost((args, kwargs))
        if level is None:
            return NotImplemented
        call = Call(op, level, *op.bind(tuple(_as_tensors(args)), _as_tensors(kwargs)))
        rule = RULES[op.batched] if op.batched is not None else None
        result = NotImplemented if rule is None else rule(call)
        if result is NotImplemented:
            return level.by_elements(lambda *a, **k: apply(op, *a, **k), args, kwargs, op.name)
        return map_leaves(lambda y: batched(y, level), result)

    def inplace(self, op: Op, target: Tensor, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        """Apply an op and write into its first operand: out of place, then a copy. NotImplemented as for `op`."""
        level = innermost((target, args, kwargs))
        if level is None:
            return NotImplemented
        if not (isinstance(target, Batched) and target.level is level):
            raise GraphError(
                f"vmap: {op.name}_ cannot write a batch into a tensor that has none",
                hint="use the op that is not in place, or make the tensor from a batched one: x.new_zeros(...)",
            )
        if op is copy:
            written = args[0] if args else kwargs["src"]
        else:
            written = apply(op, target.clone() if mode.recording else target, *args, **kwargs)
        if written.ndim > target.ndim:
            raise ShapeError(
                f"{op.name}_: output with shape {tuple(target.shape)} doesn't match {tuple(written.shape)}"
            )
        if not dtypes.can_cast(written.dtype, target.dtype):
            raise DtypeError(f"{op.name}_: result type {written.dtype} can't be cast to {target.dtype}")
        source = aligned(level, written, target.ndim)
        apply_inplace(copy, target.value, source.to(target.dtype))
        return target

    def answer(self, error: BaseException | None, function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        """Return the result of a function that has failed, because it needs the elements one by one.

        NotImplemented if it has failed for another reason.
        """
        return self.each(function, args, kwargs) if isinstance(error, BatchError) else NotImplemented

    def each(self, function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        """Return the results of a function for each element.

        NotImplemented if no argument is batched, or if the function writes into a tensor that is not.
        """
        level = innermost((args, kwargs))
        name = function.__name__
        if level is None:
            return NotImplemented
        writes = name.endswith("_") and not name.endswith("__")
        if writes and not (isinstance(args[0], Batched) and args[0].level is level):
            return NotImplemented
        return level.by_elements(function, args, kwargs, name)

    def grad(self, outputs: Sequence[Tensor], inputs: Sequence[Tensor], seeds: Sequence[Any], **options: Any) -> Any:
        """Return the gradients of batched outputs by batched inputs: those of each element.

        NotImplemented if no tensor is batched.
        """
        if innermost((outputs, inputs, seeds)) is None:
            return NotImplemented
        levels = [levels_of(y) for y in outputs]
        free = [level for own, seed in zip(levels, seeds, strict=True) for level in levels_of(seed) if level not in own]
        if free:
            return self._grad_of_seeds(max(free, key=lambda level: level.depth), outputs, inputs, seeds, options)
        for x in inputs:
            if any(level not in levels_of(x) for own in levels for level in own):
                raise GraphError(
                    "grad: under vmap, an input without a batch would get the sum of the gradients of all elements",
                    hint="use tl.func.grad, which gives each element its own",
                )
        vectors = []
        for y, seed, own in zip(outputs, seeds, levels, strict=True):
            if seed is None and y.numel() == 1:
                seed = y.new_ones(y.shape)
            vectors.append(None if seed is None else in_levels(seed, own).physical())
        found = grad([y.physical() for y in outputs], [x.physical() for x in inputs], vectors, **options)
        return tuple([g if g is None else in_batches(g, levels_of(x)) for x, g in zip(inputs, found, strict=True)])

    def _grad_of_seeds(
        self, last: Level, outputs: Sequence[Tensor], inputs: Sequence[Tensor], seeds: Sequence[Any], options: Any
    ) -> Any:
        """Return the gradients for a batch of seeds, where the graph has no such batch.

        A recorded pass takes all seeds at once, because the rules of the second order are ops. If an op has none, there
        is a pass for each seed.
        """
        if all(not levels_of(t) for t in (*outputs, *inputs)) and all(levels_of(s) in ([], [last]) for s in seeds):
            last.warns, before = False, last.warns
            try:
                return _grad_at_once(outputs, inputs, seeds, **options)
            except (UnsupportedError, BatchError):
                pass
            finally:
                last.warns = before
        rows = []
        for i in range(last.size or 1):
            row = [last.element(seed, i) for seed in seeds]
            rows.append(grad(outputs, inputs, row, **(options | {"retain_graph": True})))
        return last.stacked(rows)

    def again(self, y: Tensor, like: Tensor) -> Tensor:
        """Return a tensor with the batch dims of `like` as a batch of its levels."""
        return in_batches(y, levels_of(like))

    def by_elements(self, function: Callable[..., Any], args: Any, kwargs: Any, name: str | None) -> Any:
        """Call a function for each element of the batch, and stack the results. Warn once for each name, if any."""
        if self.warns and name is not None and name not in _warned:
            _warned.add(name)
            warn(f"vmap: there is no batching rule for {name}: it is computed for each element")
        results = []
        for i in range(self.size or 1):
            a, k = map_leaves(lambda x, i=i: self.element(x, i), (args, kwargs))
            results.append(function(*a, **k))
        return self.stacked(results)

    def stacked(self, results: Sequence[Any]) -> Any:
        """Return the results for each element as the results of one batch."""
        rows = [leaves(result) for result in results]
        if not all(x is None or isinstance(x, Tensor) for x in rows[0]):
            raise BatchError("vmap: a result that is no tensor would differ between the elements of the batch")
        columns = zip(*rows, strict=True)
        joined = [None if column[0] is None else batched(self._stack(column), self) for column in columns]
        return filled(results[0], joined)

    def _stack(self, column: Sequence[Tensor]) -> Tensor:
        """Return one result for each element as a batch; of an empty batch, `column` has that of a made-up element."""
        return apply(stack, list(column))[: self.size]

    def element(self, x: Any, i: int) -> Any:
        """Return element i of a batch of this level, zeros of an empty one; anything else as it is."""
        if isinstance(x, Batched) and x.level is self:
            return x.value[i] if self.size else x.value.new_zeros(x.value.shape[1:])
        if type(x) is BatchedArray and x.level is self:
            return x.tensor[i] if self.size else x.tensor.new_zeros(x.tensor.shape[1:])
        return x

    def like(self, result: Tensor, other: Tensor) -> Tensor:
        """Return a new tensor as a batch, if `other` is one: each element then has memory of its own."""
        if not isinstance(other, Batched):
            return result
        inner = self.like(result, other.value)
        return batched(repeated(inner, other.level.size).clone(), other.level)

    def expanded(self, x: Tensor) -> Tensor:
        """Return a tensor as a batch of all levels: what is differentiated has a gradient for each element."""
        levels: list[Level] = []
        level: Level | None = self
        while level is not None:
            levels.append(level)
            level = level.outer
        return in_levels(x, levels[::-1])


def _grad_at_once(
    outputs: Sequence[Tensor], inputs: Sequence[Tensor], seeds: Sequence[Any], *, create_graph: bool,
    allow_unused: bool | None, materialize_grads: bool, **_: Any,
) -> tuple[Tensor | None, ...]:  # fmt: skip
    """Return the gradients for a batch of seeds by one recorded pass.

    Raises: UnsupportedError if there has to be a pass for each seed
    """
    if any(x._hooks or x._retained for x in inputs) or not (allow_unused or materialize_grads):
        raise UnsupportedError("hooks get the gradient for one seed, and errors are those of one pass")
    found = derived_gradients(outputs, inputs, seeds)
    if materialize_grads:
        found = [x.new_zeros(x.shape) if g is None else g for x, g in zip(inputs, found, strict=True)]
    return tuple([g if g is None or create_graph else g.detach() for g in found])


def _as_tensors(args: Any) -> Any:
    """Return arguments with tensors in place of what stands for their arrays, as in an index."""
    return map_leaves(lambda x: batched(x.tensor, x.level) if type(x) is BatchedArray else x, args)
