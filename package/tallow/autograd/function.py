"""`autograd.Function`: ops of your own in PyTorch's class form, on tensors.

It records what `tl.op` records, a closure, so that one engine serves both; `tl.op` works on arrays and needs no class.
This module stands above the rest of the package: it uses tensors, and `tallow` puts its class into `tl.autograd`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from tallow.autograd.graph import FLOAT32, Output, check_inplace, edge_to, gradient_dtype, make_node, note_write
from tallow.autograd.modes import mode, no_grad
from tallow.dtypes import cast, dtype, widen
from tallow.errors import ArgumentTypeError, GraphError
from tallow.tensor import Tensor, wrap

F = TypeVar("F", bound=Callable[..., Any])


class FunctionCtx:
    """What forward leaves for backward, as torch.autograd.function.FunctionCtx. Attributes may be set freely.

    Attributes:
        needs_input_grad: for each argument of `apply`, whether its gradient is wanted.
    """

    needs_input_grad: tuple[bool, ...]

    def __init__(self) -> None:
        self._saved: tuple[Tensor | None, ...] = ()
        self._constant: tuple[Tensor, ...] = ()
        self._dirty: tuple[Tensor, ...] = ()
        self._materialize = True

    def save_for_backward(self, *tensors: Tensor | None) -> None:
        """Keep inputs, outputs or None; overwriting one before backward is an error then."""
        self._saved = tensors

    @property
    def saved_tensors(self) -> tuple[Tensor | None, ...]:
        return self._saved

    def mark_non_differentiable(self, *outputs: Tensor) -> None:
        """Say that these outputs have no gradient: backward gets None for them, or zeros."""
        self._constant = outputs

    def mark_dirty(self, *inputs: Tensor) -> None:
        """Say that forward writes to these inputs, which it has to return."""
        self._dirty = inputs

    def set_materialize_grads(self, value: bool) -> None:
        """Whether backward gets zeros (True, at first) or None for outputs that got no gradient."""
        self._materialize = value


class Function:
    """An op of your own: `forward`, `backward`, and `Mine.apply(x, ...)` to use it.

    Two forms, as in PyTorch: `forward(ctx, *args)`; or `forward(*args)` with `setup_context(ctx, inputs, output)`.
    `backward(ctx, *grads)` takes one gradient for each output and returns one for each argument, None where there is
    none. Both run without recording.

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
        raise ArgumentTypeError(f"{type(self).__name__} is not to be instantiated", mend="call its method apply(...)")

    @classmethod
    def apply(cls, *args: Any) -> Any:
        """Run forward, and record backward if the gradient of any argument is wanted."""
        ctx = FunctionCtx()
        ctx.needs_input_grad = tuple(isinstance(a, Tensor) and mode.recording and a.requires_grad for a in args)
        with no_grad():
            if cls.setup_context is None:
                made = cls.forward(ctx, *args)
            else:
                made = cls.forward(*args)
                cls.setup_context(ctx, args, made)
        several = isinstance(made, tuple)
        outputs = [_apart(output, args, ctx) for output in (made if several else (made,))]
        for dirty in ctx._dirty:
            note_write(dirty)
        if any(ctx.needs_input_grad):
            _record(cls, ctx, args, outputs)
        return tuple(outputs) if several else outputs[0]


def _apart(output: Any, args: Sequence[Any], ctx: FunctionCtx) -> Any:
    """An argument that is returned as it came gets a tensor of its own, for a history of its own."""
    if isinstance(output, Tensor) and not _among(output, ctx._dirty) and _among(output, args):
        return wrap(output.array[...])
    return output


def _among(tensor: Tensor, tensors: Sequence[Any]) -> bool:
    return any(t is tensor for t in tensors)


def _record(cls: type[Function], ctx: FunctionCtx, args: Sequence[Any], outputs: Sequence[Any]) -> None:
    """Put one call on the tape, and its outputs on the node."""
    edges = [edge_to(a) if isinstance(a, Tensor) else None for a in args]
    for dirty in ctx._dirty:
        _check_dirty(cls, dirty, outputs)
    # an output is saved without its history: that holds this very context
    ctx._saved = tuple(wrap(t.array) if t is not None and not _among(t, args) else t for t in ctx._saved)
    own_dtypes = [y.dtype if isinstance(y, Tensor) else None for y in outputs]

    def backward(*gs: Any) -> tuple[Any, ...]:
        given = [_as_tensor(g, d) for g, d in zip(gs, own_dtypes, strict=True)]
        with no_grad():
            made = cls.backward(ctx, *given)
        grads = made if isinstance(made, tuple) else (made,)
        if len(grads) < len(args) or any(g is not None for g in grads[len(args) :]):
            raise GraphError(
                f"{cls.__name__}.backward returned {len(grads)} gradients, and apply was given {len(args)} arguments",
                mend="return one for each argument, None for those that have none",
            )
        return tuple(None if g is None else widen(g.array) for g in grads[: len(args)])

    node = make_node(cls.__name__, backward, edges, (), FLOAT32)
    node.outputs = []
    for index, y in enumerate(outputs):
        shape, dtype = (y.array.shape, gradient_dtype(y.array)) if isinstance(y, Tensor) else ((), NO_GRADIENT)
        if dtype.kind == "f" and not _among(y, ctx._constant):
            y._node, y._requires_grad = Output(node, index, shape, dtype), True
        # what is None at backward is not made zeros for an output that seems to have no gradient
        node.outputs.append((shape, dtype if ctx._materialize else NO_GRADIENT))


NO_GRADIENT = np.dtype(np.bool_)


def _check_dirty(cls: type[Function], dirty: Tensor, outputs: Sequence[Any]) -> None:
    check_inplace(dirty, cls.__name__)
    if not _among(dirty, outputs):
        raise GraphError(f"{cls.__name__}: a tensor that is marked dirty must be returned by forward")
    if dirty._base is not None:
        raise GraphError(
            f"{cls.__name__}: a view is marked dirty, and its base cannot be told",
            mend="clone() it before, or write to it by ops",
        )


def _as_tensor(g: Any, d: dtype | None) -> Tensor | None:
    """A gradient in the dtype of its output; halves travel in float32."""
    return None if g is None or d is None else wrap(cast(np.asarray(g) if isinstance(g, np.generic) else g, d))


def once_differentiable(function: F) -> F:
    """Mark a backward that cannot be differentiated itself. No gradient of tallow's can, so this changes nothing."""
    return function
