"""`autograd.Function`: custom ops in PyTorch's class form, on tensors.

A Function records a closure, as `tl.op` does, so one engine serves both. `tl.op` works on arrays and needs no class.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from types import FunctionType, MethodType
from typing import Any, NoReturn, TypeVar
from weakref import ref

import numpy as np

from tallow.core.tensor import Tensor, wrap
from tallow.devices import array_module
from tallow.dtypes import cast, widen
from tallow.errors import ArgumentTypeError, GraphError, ShapeError
from tallow.tape.graph import FLOAT32, Node, Output, check_inplace, edge_to, gradient_dtype, node_class, note_write
from tallow.tape.modes import is_exporting, mode, no_grad

F = TypeVar("F", bound=Callable[..., Any])


class FunctionCtx:
    """The context that carries values from forward to backward. Attributes may be set freely.

    Attributes:
        needs_input_grad: for each argument of `apply`, whether its gradient is needed.
    """

    needs_input_grad: tuple[bool, ...]

    def __init__(self) -> None:
        self._saved: tuple[Tensor | None, ...] = ()
        self._constant: tuple[Tensor, ...] = ()
        self._dirty: tuple[Tensor, ...] = ()
        self._materialize = True
        self._results: dict[int, int] = {}  # place in `_saved` -> the index of the output that it is
        self._node: Callable[[], Node | None] = lambda: None

    def save_for_backward(self, *tensors: Tensor | None) -> None:
        """Save inputs, outputs or None for backward. Overwriting a saved tensor before backward is then an error."""
        self._saved = tensors

    @property
    def saved_tensors(self) -> tuple[Tensor | None, ...]:
        """The tensors that forward saved. Its outputs have the history that they were given."""
        node = self._node()
        if node is None or not self._results:
            return self._saved
        return tuple(
            _as_output(t, node, self._results[place]) if place in self._results else t
            for place, t in enumerate(self._saved)
        )

    def _keep_results(self, outputs: Sequence[Any], node: Node) -> None:
        """Save outputs without their history: it refers to this context, and the cycle would keep both alive."""
        saved, self._node = list(self._saved), ref(node)
        for place, t in enumerate(saved):
            for index, y in enumerate(outputs):
                if t is not None and t is y and not _is_in(y, self._constant):
                    self._results[place], saved[place] = index, wrap(t.array)
        self._saved = tuple(saved)

    def _read_in_backward(self) -> list[Any]:
        """Return the attributes that backward may read arrays of: not functions, which may hold anything."""
        return [value for value in vars(self).values() if not isinstance(value, FunctionType | MethodType)]

    def mark_non_differentiable(self, *outputs: Tensor) -> None:
        """Declare that these outputs have no gradient: backward gets zeros for them, or None."""
        self._constant = outputs

    def mark_dirty(self, *inputs: Tensor) -> None:
        """Declare that forward writes to these inputs in place. Forward must return them."""
        self._dirty = inputs

    def set_materialize_grads(self, value: bool) -> None:
        """Choose what backward gets for outputs that received no gradient: zeros (True, the default) or None."""
        self._materialize = value


class Function:
    """A custom op: define `forward` and `backward`, and call `MyFunction.apply(x, ...)`.

    As in PyTorch there are two forms: `forward(ctx, *args)`, or `forward(*args)` with
    `setup_context(ctx, inputs, output)`. `backward(ctx, *grads)` takes one gradient for each output and returns one for
    each argument, or None. Neither is recorded, but for backward with create_graph=True.

    Example:
        >>> import tallow as tl
        >>> class Cube(tl.autograd.Function):
        ...     @staticmethod
        ...     def forward(ctx, x):
        ...         ctx.save_for_backward(x)
        ...         return x**3
        ...     @staticmethod
        ...     def backward(ctx, grad):
        ...         (x,) = ctx.saved_tensors
        ...         return 3 * x * x * grad
        >>> x = tl.tensor(2.0, requires_grad=True)
        >>> _ = Cube.apply(x).backward()
        >>> x.grad
        tensor(12.)
    """

    forward: Callable[..., Any]
    backward: Callable[..., Any]
    setup_context: Callable[..., None] | None = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise ArgumentTypeError(f"{type(self).__name__} cannot be instantiated", hint="call its method apply(...)")

    @classmethod
    def apply(cls, *args: Any) -> Any:
        """Run forward, and record backward if any argument needs a gradient."""
        if mode.batching is not None and (of_batch := mode.batching.each(cls.apply, args, {})) is not NotImplemented:
            return of_batch
        ctx, exports = FunctionCtx(), is_exporting()
        ctx.needs_input_grad = tuple(isinstance(a, Tensor) and mode.recording and a.requires_grad for a in args)
        with nullcontext() if exports else no_grad():  # a graph has the gradients of forward's ops
            if cls.setup_context is None:
                result = cls.forward(ctx, *args)
            else:
                result = cls.forward(*args)
                cls.setup_context(ctx, args, result)
        several = isinstance(result, tuple)
        outputs = [_with_own_history(output, args, ctx) for output in (result if several else (result,))]
        for dirty in ctx._dirty:
            note_write(dirty)
        if any(ctx.needs_input_grad) and not exports:
            _record(cls, ctx, args, outputs)
        return tuple(outputs) if several else outputs[0]


def _with_own_history(output: Any, args: Sequence[Any], ctx: FunctionCtx) -> Any:
    """Return a new tensor for an argument that forward returns unchanged, because its history is another one."""
    if isinstance(output, Tensor) and not _is_in(output, ctx._dirty) and _is_in(output, args):
        return wrap(output.array[...])
    return output


def _as_output(saved: Any, node: Node, index: int) -> Tensor:
    """Return a saved output with the history of the output."""
    result = wrap(saved.array)
    shape, dtype = result.array.shape, gradient_dtype(result.array)
    if dtype.kind in "fc":
        result._node, result._requires_grad = Output(node, index, shape, dtype), True
    return result


def _is_in(tensor: Tensor, tensors: Sequence[Any]) -> bool:
    """Return whether the sequence holds this very tensor. `in` would compare elements."""
    return any(t is tensor for t in tensors)


def _record(cls: type[Function], ctx: FunctionCtx, args: Sequence[Any], outputs: Sequence[Any]) -> None:
    """Record one call as a node, and make the outputs point to it."""
    edges = [edge_to(a) if isinstance(a, Tensor) else None for a in args]
    for dirty in ctx._dirty:
        _check_dirty(cls, dirty, outputs)
    shapes = [a.array.shape if isinstance(a, Tensor) else None for a in args]
    backward = FunctionBackward(cls, ctx, shapes, outputs)
    node = node_class(f"{cls.__name__}Backward")(cls.__name__, backward, edges, (), FLOAT32)
    ctx._keep_results(outputs, node)
    node.outputs = []
    for index, y in enumerate(outputs):
        shape, dtype = (y.array.shape, gradient_dtype(y.array)) if isinstance(y, Tensor) else ((), NO_GRADIENT)
        if dtype.kind in "fc" and not _is_in(y, ctx._constant):
            y._node, y._requires_grad = Output(node, index, shape, dtype), True
        # With NO_GRADIENT as its dtype, the engine passes None for an output that received no gradient, not zeros.
        node.outputs.append((shape, dtype if ctx._materialize else NO_GRADIENT))


NO_GRADIENT = np.dtype(np.bool_)


def _check_dirty(cls: type[Function], dirty: Tensor, outputs: Sequence[Any]) -> None:
    """Raise GraphError unless autograd can follow what forward did to a tensor marked dirty."""
    check_inplace(dirty, cls.__name__)
    if not _is_in(dirty, outputs):
        raise GraphError(f"{cls.__name__}: forward must return every tensor that it marks dirty")
    if dirty._base is not None:
        raise GraphError(
            f"{cls.__name__}: a view is marked dirty, and the gradient of its base cannot be computed",
            hint="clone() it first, or write to it with in-place ops",
        )


class FunctionBackward:
    """The closure of a Function. It does not hold the arguments: only what forward saved has to stay as it is."""

    __slots__ = ("cls", "ctx", "like", "shapes")

    def __init__(
        self, cls: type[Function], ctx: FunctionCtx, shapes: Sequence[tuple[int, ...] | None], outputs: Sequence[Any]
    ) -> None:
        self.cls, self.ctx = cls, ctx
        self.shapes = shapes  # of the arguments; None for what is no tensor
        self.like = [_Like(y) if isinstance(y, Tensor) else None for y in outputs]

    def __call__(self, *gs: Any) -> tuple[Any, ...]:
        materialize = self.ctx._materialize
        output_grads = [y and y.gradient(g, materialize) for y, g in zip(self.like, gs, strict=True)]
        with no_grad():
            grads = self._checked(self.cls.backward(self.ctx, *output_grads))
        return tuple(None if g is None else widen(g.array) for g in grads)

    def derived(self, gs: Sequence[Any]) -> Sequence[Any]:
        """Return the gradients of the arguments from those of the outputs, as tensors with a history."""
        output_grads = [y and y.derived(g, self.ctx._materialize) for y, g in zip(self.like, gs, strict=True)]
        is_once = getattr(self.cls.backward, "_is_once", False)
        with no_grad() if is_once else nullcontext():
            grads = self._checked(self.cls.backward(self.ctx, *output_grads))
        return [_raising(self.cls, g, output_grads) for g in grads] if is_once else grads

    def _checked(self, result: Any) -> tuple[Any, ...]:
        grads, count = result if isinstance(result, tuple) else (result,), len(self.shapes)
        if len(grads) < count or any(g is not None for g in grads[count:]):
            gradients = "1 gradient" if len(grads) == 1 else f"{len(grads)} gradients"
            raise GraphError(
                f"{self.cls.__name__}.backward returned {gradients} for {count} arguments of apply",
                hint="return one gradient for each argument, None for arguments without a gradient",
            )
        for index, (g, shape) in enumerate(zip(grads, self.shapes, strict=False)):
            if isinstance(g, Tensor) and shape is not None and not _fits(g.shape, shape):
                raise ShapeError(
                    f"Function {self.cls.__name__}Backward returned an invalid gradient at index {index} - got "
                    f"{list(g.shape)} but expected shape compatible with {list(shape)}",
                    hint="backward returns a gradient of each argument's own shape, or one to sum over broadcast dims",
                )
        return tuple(g.to_dense() if isinstance(g, Tensor) and g._answer is not None else g for g in grads[:count])


def _fits(shape: tuple[int, ...], target: tuple[int, ...]) -> bool:
    """Return whether a gradient can be summed over dims that were broadcast, or has fewer dims and is repeated."""
    if len(shape) < len(target):
        shape, target = target, shape
    return all(n in (1, m) for m, n in zip(reversed(shape), reversed(target), strict=False))


def _raising(cls: type[Function], g: Tensor | None, output_grads: Sequence[Any]) -> Tensor | None:
    """Return a gradient that raises GraphError when it is differentiated."""
    if g is None:
        return None

    def backward(_: Any) -> NoReturn:
        raise GraphError(
            f"{cls.__name__}: trying to differentiate twice a function that was marked with @once_differentiable"
        )

    result = wrap(g.array)
    edges = [edge_to(h) for h in output_grads if h is not None]
    result._node = node_class("Error")("error", backward, edges, g.array.shape, gradient_dtype(g.array))
    result._requires_grad = True
    return result


class _Like:
    """The size, dtype and array module of an output, without its memory."""

    def __init__(self, output: Tensor) -> None:
        self.shape, self.dtype, self.module = output.array.shape, output.dtype, array_module(output.array)

    def gradient(self, g: Any, materialize: bool) -> Tensor | None:
        """Return a gradient in the dtype of the output. Gradients of halves arrive in float32, of integers never."""
        if g is None:
            return wrap(self.module.zeros(self.shape, self.dtype.storage)) if materialize else None
        return wrap(cast(np.asarray(g) if isinstance(g, np.generic) else g, self.dtype))

    def derived(self, g: Tensor | None, materialize: bool) -> Tensor | None:
        """As `gradient`, of a gradient with a history."""
        return self.gradient(None, materialize) if g is None else g.to(self.dtype)


def once_differentiable(function: F) -> F:
    """Mark a backward that cannot be differentiated itself: with create_graph, it raises UnsupportedError."""
    function._is_once = True  # type: ignore[attr-defined]
    return function
