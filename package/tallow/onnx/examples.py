"""Facts of values that are known before a model runs: dtypes, numbers of dims, and sizes that no input decides.

Each function of the graph also runs on two examples, tensors of the device `meta`, which have no elements. The two
differ in the size of every dim that the file leaves open. What is equal in both does not depend on these sizes.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any, NamedTuple

from tallow.autograd import no_grad
from tallow.core.creation import empty
from tallow.core.tensor import Tensor
from tallow.devices import device
from tallow.errors import TallowError
from tallow.fx.node import Node, map_arg
from tallow.onnx.signature import ValueInfo

# Sizes of open dims in the two examples: of the first dim, of others of floats, and of others of integers, which are
# lengths of texts. Networks halve pictures up to six times. No difference or sum of a few is equal in both, nor are the
# halves, thirds or remainders of a batch.
BATCH = ((2, 5),)
FLOATS = ((64, 192), (128, 320), (192, 640), (256, 1024))
LENGTHS = ((8, 24), (16, 40), (12, 44), (20, 68))
MOST = 1 << 25  # elements of an example; functions without a rule for shapes run on zeros
MOST_OF_ALL = 1 << 30  # elements of all examples of a file

Sizes = tuple[tuple[int, int], ...]
# What an operator raises for operands and attributes that it does not take
FAILURES = (
    *(TallowError, ValueError, TypeError, LookupError, AttributeError, ArithmeticError, MemoryError),
    RuntimeError,  # of NumPy, for more dims than it broadcasts
)


class Pair(NamedTuple):
    """The value of a node in the two examples."""

    first: Any
    second: Any


class Examples:
    """Gives nodes their examples, `node.meta["example"]`, as long as the file allows."""

    def __init__(self) -> None:
        self._sizes: dict[str, tuple[int, int]] = {}
        self._left = MOST_OF_ALL

    def of_input(self, info: ValueInfo) -> Pair | None:
        """Return the example of an input, or None if the file does not say its dtype or its number of dims."""
        if info.kind != "tensor" or info.dtype is None or info.shape is None:
            return None
        pairs = FLOATS if info.dtype.is_floating_point else LENGTHS
        sizes = [self._size(info.name, i, dim, pairs if i else BATCH) for i, dim in enumerate(info.shape)]
        shapes = [tuple(size[k] for size in sizes) for k in (0, 1)]
        if max(map(prod, shapes)) > MOST:
            return None
        return Pair(*(empty(shape, dtype=info.dtype, device="meta") for shape in shapes))

    def _size(self, name: str, position: int, dim: int | str | None, pairs: Sizes) -> tuple[int, int]:
        if isinstance(dim, int):
            return dim, dim
        symbol = dim or f"{name}\0{position}"
        if symbol not in self._sizes:
            used = [*self._sizes.values()]
            self._sizes[symbol] = next((pair for pair in pairs if pair not in used), pairs[0])
        return self._sizes[symbol]

    def of_member(self, value: Any) -> Pair | None:
        """Return the example of what the module has."""
        if not isinstance(value, Tensor):
            return None
        held = value.detach().to("meta")
        return Pair(held, held)

    def of_call(self, node: Node) -> Pair | None:
        """Return the example of a call, or None if values decide about it."""
        results: list[Any] = []
        for k in (0, 1):
            try:
                args, kwargs = (map_arg(each, _example_of(k)) for each in (node.args, node.kwargs))
                with no_grad(), device("meta"):
                    if node.op == "call_method":
                        results.append(getattr(args[0], str(node.target))(*args[1:], **kwargs))
                    else:
                        assert callable(node.target)
                        results.append(node.target(*args, **kwargs))
            except FAILURES:
                return None
            size = sum(each.numel() for each in _tensors(results[-1]))
            self._left -= size
            if size > MOST or self._left < 0:
                return None
        return Pair(*results)


def _example_of(which: int) -> Callable[[Node], Any]:
    def example(node: Node) -> Any:
        pair = node.meta.get("example")
        if pair is None:
            raise ValueError(f"{node} has no example")
        return pair[which]

    return example


def _tensors(value: Any) -> list[Tensor]:
    if isinstance(value, tuple | list):
        return [tensor for each in value for tensor in _tensors(each)]
    return [value] if isinstance(value, Tensor) else []


def known_shape(pair: Pair | None) -> tuple[int | None, ...] | None:
    """Return the sizes of a tensor's dims, None for each that an input decides; None if nothing is known."""
    if pair is None or not all(isinstance(each, Tensor) for each in pair) or pair.first.ndim != pair.second.ndim:
        return None
    return tuple(a if a == b else None for a, b in zip(pair.first.shape, pair.second.shape, strict=True))


def known_dtype(pair: Pair | None) -> Any:
    """Return the dtype of a tensor, or None."""
    if pair is None or not all(isinstance(each, Tensor) for each in pair):
        return None
    return pair.first.dtype if pair.first.dtype is pair.second.dtype else None
