"""Read what layers compute while a model runs: hidden states and attention weights; and replace embeddings.

Hooks on the layers do it, so that models need no arguments for it, and so that fused blocks give way to the layers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

from tallow.core.tensor import Tensor
from tallow.functions.attention import attention_weights
from tallow.models.encoders.encoder_layers import EncoderLayers
from tallow.nn.container import ModuleList
from tallow.nn.module import Module


@dataclass
class Captured:
    """The results of the layers of one stack in a call.

    Attributes:
        hidden: the input of each layer, (B, T, D).
        last: the output of the last one.
        weights: of each attention in the order of the calls, (B, H, T, S).
    """

    hidden: list[Tensor] = field(default_factory=list)
    weights: list[Tensor] = field(default_factory=list)
    last: Tensor | None = None

    def hidden_states(self, last: Tensor | None = None) -> tuple[Tensor, ...] | None:
        """Return the hidden states, or None if they were not asked for.

        Args:    last: takes the place of the last layer's output, such as what a norm makes of it
        """
        end = self.last if last is None else last
        return (*self.hidden, end) if self.hidden and end is not None else None

    def attentions(self, start: int = 0, step: int = 1) -> tuple[Tensor, ...] | None:
        """Return the attention weights of each layer, or None if they were not asked for.

        Args:    start, step: of those of a layer with two attentions, the first or the second
        """
        return tuple(self.weights[start::step]) or None


def layers_of(stack: Module) -> list[Module]:
    """Return the layers of a stack, each once: the modules of its first list, or of its encoder's."""
    found = next(module for module in stack.modules() if isinstance(module, ModuleList | EncoderLayers))
    return list(dict.fromkeys(found.in_order()) if isinstance(found, EncoderLayers) else found)


@contextmanager
def capturing(stack: Module, *, hidden: bool, weights: bool) -> Iterator[Captured]:
    """Record what the layers of `stack` compute in the block.

    Args:    hidden, weights: what to record
    """
    captured = Captured()
    with ExitStack() as after:
        if hidden or weights:
            layers = layers_of(stack)
            for layer in layers:
                after.callback(layer.register_forward_pre_hook(_recorder(captured.hidden, hidden)).remove)
            if hidden:
                after.callback(layers[-1].register_forward_hook(_last_recorder(captured)).remove)
        if weights:
            captured.weights = after.enter_context(attention_weights())
        yield captured


def _recorder(into: list[Tensor], wanted: bool) -> Callable[[Module, tuple[Any, ...]], None]:
    def record(_: Module, args: tuple[Any, ...]) -> None:
        if wanted:
            into.append(args[0])

    return record


def _last_recorder(into: Captured) -> Callable[[Module, tuple[Any, ...], Tensor], None]:
    def record(_: Module, __: tuple[Any, ...], output: Tensor) -> None:
        into.last = output  # of the last call of a layer that is applied several times

    return record


@contextmanager
def output_of(module: Module, make: Callable[[], Tensor] | None) -> Iterator[None]:
    """Let a module return what `make` returns, in the block; None leaves it as it is."""
    if make is None:
        yield
        return
    handle = module.register_forward_hook(lambda *_: make())
    try:
        yield
    finally:
        handle.remove()
