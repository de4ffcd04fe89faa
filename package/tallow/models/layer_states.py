"""The hidden states of all layers, for heads that read a weighted sum of them.

Letters: B batch, T positions, D width, L hidden states.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

from tallow.core.apply import apply
from tallow.core.tensor import Tensor
from tallow.nn.module import Module
from tallow.ops.joining import stack


@contextmanager
def recorded(layers: Sequence[Module]) -> Iterator[list[Tensor]]:
    """Record the input (B, T, D) of each layer that runs in the block, and the output of the last one."""
    states: list[Tensor] = []
    with ExitStack() as hooks:
        for layer in layers:
            hooks.callback(layer.register_forward_pre_hook(lambda _, args: states.append(args[0])).remove)
        for layer in layers[-1:]:
            hooks.callback(layer.register_forward_hook(lambda _, __, output: states.append(output)).remove)
        yield states


def weighted_sum(states: list[Tensor], weights_L: Tensor) -> Tensor:
    """Return the sum (B, T, D) of hidden states, weighted by the softmax of `weights_L` (L,)."""
    shares_L = weights_L.softmax(-1)
    return (apply(stack, states, 1) * shares_L.reshape(-1, 1, 1)).sum(1)
