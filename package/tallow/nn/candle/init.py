"""`Init`: initial values of new variables, as candle_nn::Init."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod, sqrt
from typing import Protocol

from tallow.core.tensor import Tensor
from tallow.errors import ArgumentError
from tallow.nn import init


class Filler(Protocol):
    """An object that fills a tensor with initial values and returns it."""

    def fill_(self, tensor: Tensor) -> Tensor:
        """Fill a tensor in place and return it."""
        ...


class Init:
    """Initial values: `Init.Const(0.5)`, `Init.Randn(0, 0.02)`, `Init.Uniform(-1, 1)` or `Init.Kaiming()`.

    Random values come from the default generator. Any object with a `fill_` method can be used instead.
    """

    @dataclass(frozen=True)
    class Const(Filler):
        """A constant."""

        value: float

        def fill_(self, tensor: Tensor) -> Tensor:
            return init.constant_(tensor, self.value)

    @dataclass(frozen=True)
    class Randn(Filler):
        """N(mean, stdev²)."""

        mean: float
        stdev: float

        def fill_(self, tensor: Tensor) -> Tensor:
            return init.normal_(tensor, self.mean, self.stdev)

    @dataclass(frozen=True)
    class Uniform(Filler):
        """U(lo, up)."""

        lo: float
        up: float

        def fill_(self, tensor: Tensor) -> Tensor:
            return init.uniform_(tensor, self.lo, self.up)

    @dataclass(frozen=True)
    class Kaiming(Filler):
        """Mean zero and standard deviation gain / sqrt(fan), which preserves the variance of activations.

        Args:
            dist: "normal" or "uniform".
            fan: "fan_in" or "fan_out".
            non_linearity: name of the following nonlinearity, see `nn.init.calculate_gain`; or the gain itself.
        Raises:  ArgumentError for other values
        Source:  He et al. 2015, arXiv:1502.01852, section 2.2
        """

        dist: str = "normal"
        fan: str = "fan_in"
        non_linearity: str | float = "relu"

        def __post_init__(self) -> None:
            if self.dist not in ("normal", "uniform"):
                raise ArgumentError(f"Kaiming: dist={self.dist!r}", hint="use 'normal' or 'uniform'")
            if self.fan not in ("fan_in", "fan_out"):
                raise ArgumentError(f"Kaiming: fan={self.fan!r}", hint="use 'fan_in' or 'fan_out'")

        def fill_(self, tensor: Tensor) -> Tensor:
            name = self.non_linearity
            gain = init.calculate_gain(name) if isinstance(name, str) else name
            std = gain / sqrt(max(self._fan_of(tuple(tensor.shape)), 1))
            if self.dist == "normal":
                return init.normal_(tensor, 0.0, std)
            return init.uniform_(tensor, -sqrt(3) * std, sqrt(3) * std)

        def _fan_of(self, shape: tuple[int, ...]) -> int:
            """Return candle's fan, which unlike PyTorch's is defined for scalars and vectors too."""
            axis = 1 if self.fan == "fan_in" else 0
            return shape[axis] * prod(shape[2:]) if len(shape) > axis else 1

    ZERO = Const(0.0)
    ONE = Const(1.0)
    DEFAULT_KAIMING_NORMAL = Kaiming("normal")
    DEFAULT_KAIMING_UNIFORM = Kaiming("uniform")
