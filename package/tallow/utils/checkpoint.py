"""Activation checkpointing: recompute what backward needs of a part of a model instead of storing it.

Source:  Chen et al. 2016, arXiv:1604.06174
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np

from tallow.autograd import enable_grad, grad, is_grad_enabled
from tallow.autograd.function import Function
from tallow.core.tensor import Tensor, wrap
from tallow.errors import ArgumentError
from tallow.lazy_names import names_of
from tallow.random import default_generator
from tallow.tape.graph import Edge, Node, Output, edge_to, next_in_sequence, place_of
from tallow.tape.modes import is_exporting, mode

__all__ = ["checkpoint", "checkpoint_sequential"]


def checkpoint(
    function: Callable[..., Any],
    *args: Any,
    use_reentrant: bool | None = None,
    preserve_rng_state: bool = True,
    context_fn: Callable[[], tuple[AbstractContextManager[Any], AbstractContextManager[Any]]] | None = None,
    determinism_check: str = "default",
    debug: bool = False,
    **kwargs: Any,
) -> Any:
    """Call `function(*args, **kwargs)` and store only its arguments; backward calls it again for the rest.

    Gradients reach the arguments that are tensors, and the parameters that the function uses. Under `vmap`, and in
    an exported program, everything is stored.

    Args:
        function: returns a tensor, or a tuple of tensors and other values; it must do the same in both calls.
        preserve_rng_state: draw the same random numbers in the second call, so that dropout masks are the same.
        context_fn: returns two context managers, for the first and the second call.
        use_reentrant, determinism_check, debug: have no effect; there is one way to recompute.
    """
    first, again = (nullcontext(), nullcontext()) if context_fn is None else context_fn()
    if not is_grad_enabled() or mode.batching is not None or is_exporting():
        with first:
            return function(*args, **kwargs)
    segment, start = _Segment(function, args, kwargs, preserve_rng_state, again), next_in_sequence()
    with first:
        result = segment.run()
    outputs = result if isinstance(result, tuple) else (result,)
    own = set(map(id, segment.inputs))
    used = [_at(edge) for edge in _edges_behind(outputs, start) if id(edge) not in own]
    segment.outputs = tuple(t.detach() if isinstance(t, Tensor) else t for t in outputs)
    returned = _Recomputed.apply(segment, *segment.tensors, *used)
    return returned if isinstance(result, tuple) else returned[0]


class _Segment:
    """A call that can be repeated.

    Attributes:
        tensors: the arguments that are tensors.
        inputs: the same tensors as leaves, which the call gets in their place.
        outputs: what the first call returned; empty once it has been handed over, so that it may be overwritten.
        context: of the second call.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        args: Sequence[Any],
        kwargs: dict[str, Any],
        preserve_rng_state: bool,
        context: AbstractContextManager[Any],
    ) -> None:
        self.context = context
        self.function, self.args, self.kwargs = function, args, kwargs
        self.tensors = [a for a in args if isinstance(a, Tensor)]
        self.random_state = default_generator.get_state() if preserve_rng_state else None
        self.autocast = mode.autocast
        self.inputs: list[Tensor] = []
        self.outputs: tuple[Any, ...] = ()

    def run(self) -> Any:
        """Call the function on leaves, so that its graph ends at its arguments."""
        return self.run_on([t.detach().requires_grad_(t.requires_grad) for t in self.tensors])

    def run_on(self, tensors: list[Tensor]) -> Any:
        """Call the function on these tensors in place of the arguments."""
        self.inputs = tensors
        inputs = iter(self.inputs)
        with enable_grad():
            return self.function(*(next(inputs) if isinstance(a, Tensor) else a for a in self.args), **self.kwargs)

    def run_again(self) -> tuple[Any, ...]:
        """Call the function again, with the random state and autocast of the first call. Return the outputs.

        In a backward pass that is recorded, the outputs are parts of the outer graph.
        """
        outside, autocast = default_generator.get_state(), mode.autocast
        if self.random_state is not None:
            default_generator.set_state(self.random_state)
        mode.autocast = self.autocast
        try:
            with self.context:
                result = self.run_on([t.view_as(t) for t in self.tensors]) if mode.recording else self.run()
        finally:
            mode.autocast = autocast
            if self.random_state is not None:
                default_generator.set_state(outside)
        return result if isinstance(result, tuple) else (result,)


class _Recomputed(Function):
    """The op that stands for a segment: forward returns what was computed, backward computes it again and goes back."""

    @staticmethod
    def forward(ctx: Any, segment: _Segment, *tensors: Tensor) -> Any:
        ctx.segment, ctx.used = segment, tensors[len(segment.tensors) :]
        ctx.save_for_backward(*tensors)  # so that overwriting one before backward is an error
        ctx.set_materialize_grads(False)
        outputs, segment.outputs = segment.outputs, ()
        return outputs

    @staticmethod
    def backward(ctx: Any, *grads: Tensor | None) -> tuple[Any, ...]:
        outputs = ctx.segment.run_again()
        pairs = [
            (y, g)
            for y, g in zip(outputs, grads, strict=True)
            if g is not None and isinstance(y, Tensor) and y.requires_grad
        ]
        leaves = [t for t in (*ctx.segment.inputs, *ctx.used) if t.requires_grad]
        found = grad(
            [y for y, _ in pairs], leaves, [g for _, g in pairs], allow_unused=True, create_graph=mode.recording
        )
        leaf_grads = iter(found)
        return None, *(next(leaf_grads) if t.requires_grad else None for t in (*ctx.segment.inputs, *ctx.used))


def _edges_behind(outputs: Sequence[Any], start: int) -> Iterator[Edge]:
    """Yield what the outputs depend on, each once: leaves, and outputs of ops that were recorded before `start`."""
    pending = [edge_to(t) for t in outputs if isinstance(t, Tensor)]
    seen = set()
    while pending:
        edge = pending.pop()
        if edge is None or place_of(edge) in seen:
            continue
        seen.add(place_of(edge))
        node = edge.node if isinstance(edge, Output) else edge
        if isinstance(node, Node) and node.sequence > start:
            pending += node.edges
        else:
            yield edge


def _at(edge: Edge) -> Tensor:
    """Return a tensor whose gradient goes to an edge: the leaf, or one without memory."""
    if not isinstance(edge, Node | Output):
        leaf: Tensor = edge
        return leaf
    tensor = wrap(np.broadcast_to(np.zeros((), edge.dtype), edge.shape))
    tensor._node, tensor._requires_grad = edge, True
    return tensor


def checkpoint_sequential(
    functions: Any, segments: int, input: Any, use_reentrant: bool | None = None, **kwargs: Any
) -> Any:
    """Run a chain of modules in segments, each checkpointed except the last."""
    chain = list(functions.children() if hasattr(functions, "children") else functions)
    if not 1 <= segments <= len(chain):
        raise ArgumentError(f"checkpoint_sequential: {segments} segments of {len(chain)} modules")
    size = len(chain) // segments

    def running(part: list[Callable[..., Any]]) -> Callable[..., Any]:
        def run(x: Any) -> Any:
            for function in part:
                x = function(x)
            return x

        return run

    for start in range(0, size * (segments - 1), size):
        input = checkpoint(running(chain[start : start + size]), input, use_reentrant=use_reentrant, **kwargs)
    return running(chain[size * (segments - 1) :])(input)


__getattr__, __dir__ = names_of(__name__)
