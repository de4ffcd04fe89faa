"""`Init`: how a variable that is not there yet starts, as candle_nn::Init."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod, sqrt
from typing import Protocol

from tallow.errors import ArgumentError
from tallow.nn import init
from tallow.tensor import Tensor


class Filler(Protocol):
    """Anything that fills a tensor with initial values, and returns it."""

    def fill_(self, tensor: Tensor) -> Tensor: ...


class Init:
    """The initial values there are: `Init.Const(0.5)`, `Init.Randn(0, 0.02)`, `Init.Uniform(-1, 1)`, `Init.Kaiming()`.

    They are drawn from the default generator. Any object with a `fill_` can stand in their place.
    """

    @dataclass(frozen=True)
    class Const:
        """One value everywhere."""

        value: float

        def fill_(self, tensor: Tensor) -> Tensor:
            return init.constant_(tensor, self.value)

    @dataclass(frozen=True)
    class Randn:
        """N(mean, stdev²)."""

        mean: float
        stdev: float

        def fill_(self, tensor: Tensor) -> Tensor:
            return init.normal_(tensor, self.mean, self.stdev)

    @dataclass(frozen=True)
    class Uniform:
        """U(lo, up)."""

        lo: float
        up: float

        def fill_(self, tensor: Tensor) -> Tensor:
            return init.uniform_(tensor, self.lo, self.up)

    @dataclass(frozen=True)
    class Kaiming:
        """Of mean zero and standard deviation gain / sqrt(fan): what passes through keeps its size.

        Args:
            dist: "normal" or "uniform".
            fan: "fan_in", the inputs of each output, or "fan_out".
            non_linearity: what follows, in the words of `nn.init.calculate_gain`; or the gain itself.
        Raises:  ArgumentError for other words
        Source:  He et al. 2015, arXiv:1502.01852, section 2.2
        """

        dist: str = "normal"
        fan: str = "fan_in"
        non_linearity: str | float = "relu"

        def __post_init__(self) -> None:
            if self.dist not in ("normal", "uniform"):
                raise ArgumentError(f"Kaiming: dist={self.dist!r}", mend="use 'normal' or 'uniform'")
            if self.fan not in ("fan_in", "fan_out"):
                raise ArgumentError(f"Kaiming: fan={self.fan!r}", mend="use 'fan_in' or 'fan_out'")

        def fill_(self, tensor: Tensor) -> Tensor:
            follows = self.non_linearity
            gain = init.calculate_gain(follows) if isinstance(follows, str) else follows
            std = gain / sqrt(max(self._fan_of(tuple(tensor.shape)), 1))
            if self.dist == "normal":
                return init.normal_(tensor, 0.0, std)
            return init.uniform_(tensor, -sqrt(3) * std, sqrt(3) * std)

        def _fan_of(self, shape: tuple[int, ...]) -> int:
            """As candle's, which unlike PyTorch's is there for vectors and numbers too."""
            axis = 1 if self.fan == "fan_in" else 0
            return shape[axis] * prod(shape[2:]) if len(shape) > axis else 1

    ZERO = Const(0.0)
    ONE = Const(1.0)
    DEFAULT_KAIMING_NORMAL = Kaiming("normal")
    DEFAULT_KAIMING_UNIFORM = Kaiming("uniform")
