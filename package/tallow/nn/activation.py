"""Activations as modules.

Arguments and defaults are PyTorch's. The result has the shape of the input unless stated otherwise. With `inplace`, the
result overwrites the input.
"""

from __future__ import annotations

from typing import Any

from tallow.core.tensor import Tensor
from tallow.errors import ArgumentError, FailedAssertionError
from tallow.nn import functional as F
from tallow.nn import init
from tallow.nn.module import Module
from tallow.nn.parameter import empty_parameter


class _Inplace(Module):
    """Base of activations whose only argument is `inplace`."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def extra_repr(self) -> str:
        return "inplace=True" if self.inplace else ""


def _with_inplace(arguments: str, inplace: bool) -> str:
    """The text of `extra_repr`, with `inplace=True` appended where it is set."""
    return f"{arguments}, inplace=True" if inplace else arguments


# --------------------------------------------------------------------------------------------------- piecewise linear


class ReLU(_Inplace):
    """max(x, 0)"""

    def forward(self, input: Tensor) -> Tensor:
        return F.relu(input, self.inplace)


class LeakyReLU(Module):
    """x where x > 0, elsewhere negative_slope · x."""

    def __init__(self, negative_slope: float = 0.01, inplace: bool = False) -> None:
        super().__init__()
        self.negative_slope = negative_slope
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.leaky_relu(input, self.negative_slope, self.inplace)

    def extra_repr(self) -> str:
        return _with_inplace(f"negative_slope={self.negative_slope}", self.inplace)


class PReLU(Module):
    """x where x > 0, elsewhere weight · x, with a learned weight.

    Shapes:  input (N, C, ...), weight (num_parameters), where num_parameters is 1 or C
    Source:  He et al. 2015, arXiv:1502.01852
    """

    def __init__(self, num_parameters: int = 1, init: float = 0.25, device: Any = None, dtype: Any = None) -> None:
        super().__init__()
        self.num_parameters = num_parameters
        self.init = init
        self.weight = empty_parameter(num_parameters, device=device, dtype=dtype)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set every slope to its initial value."""
        init.constant_(self.weight, self.init)

    def forward(self, input: Tensor) -> Tensor:
        return F.prelu(input, self.weight)

    def extra_repr(self) -> str:
        return f"num_parameters={self.num_parameters}"


class RReLU(Module):
    """x where x > 0, elsewhere a · x: in training, a is drawn from [lower, upper]; in evaluation, it is their mean.

    Source:  Xu et al. 2015, arXiv:1505.00853
    """

    def __init__(self, lower: float = 1 / 8, upper: float = 1 / 3, inplace: bool = False) -> None:
        super().__init__()
        self.lower = lower
        self.upper = upper
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.rrelu(input, self.lower, self.upper, self.training, self.inplace)

    def extra_repr(self) -> str:
        return _with_inplace(f"lower={self.lower}, upper={self.upper}", self.inplace)


class Hardtanh(Module):
    """Clamp x to [min_val, max_val].

    Args:    min_value, max_value: older names of min_val and max_val
    Raises:  ArgumentError if max_val <= min_val
    """

    def __init__(
        self,
        min_val: float = -1.0,
        max_val: float = 1.0,
        inplace: bool = False,
        min_value: float | None = None,
        max_value: float | None = None,
    ) -> None:
        super().__init__()
        self.min_val = min_val if min_value is None else min_value
        self.max_val = max_val if max_value is None else max_value
        self.inplace = inplace
        if self.max_val <= self.min_val:
            raise FailedAssertionError(
                f"Hardtanh: max_val ({self.max_val}) must be greater than min_val ({self.min_val})"
            )

    def forward(self, input: Tensor) -> Tensor:
        return F.hardtanh(input, self.min_val, self.max_val, self.inplace)

    def extra_repr(self) -> str:
        return _with_inplace(f"min_val={self.min_val}, max_val={self.max_val}", self.inplace)


class ReLU6(Hardtanh):
    """min(max(x, 0), 6)"""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__(0.0, 6.0, inplace)

    def extra_repr(self) -> str:
        return "inplace=True" if self.inplace else ""


class Threshold(Module):
    """x where x > threshold, elsewhere `value`."""

    def __init__(self, threshold: float, value: float, inplace: bool = False) -> None:
        super().__init__()
        self.threshold = threshold
        self.value = value
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.threshold(input, self.threshold, self.value, self.inplace)

    def extra_repr(self) -> str:
        return _with_inplace(f"threshold={self.threshold}, value={self.value}", self.inplace)


class Hardsigmoid(_Inplace):
    """min(max(x + 3, 0), 6) / 6"""

    def forward(self, input: Tensor) -> Tensor:
        return F.hardsigmoid(input, self.inplace)

    def extra_repr(self) -> str:
        return ""  # PyTorch does not print `inplace` here


class Hardswish(_Inplace):
    """x · hardsigmoid(x).  Source: Howard et al. 2019, arXiv:1905.02244"""

    def forward(self, input: Tensor) -> Tensor:
        return F.hardswish(input, self.inplace)

    def extra_repr(self) -> str:
        return ""  # PyTorch does not print `inplace` here either


class Hardshrink(Module):
    """x where |x| > lambd, elsewhere 0."""

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.lambd = lambd

    def forward(self, input: Tensor) -> Tensor:
        return F.hardshrink(input, self.lambd)

    def extra_repr(self) -> str:
        return f"{self.lambd}"


class Softshrink(Module):
    """Shrink x towards 0 by lambd: x - lambd, x + lambd, or 0 where |x| <= lambd."""

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.lambd = lambd

    def forward(self, input: Tensor) -> Tensor:
        return F.softshrink(input, self.lambd)

    def extra_repr(self) -> str:
        return f"{self.lambd}"


# ------------------------------------------------------------------------------------------------------------- smooth


class Sigmoid(Module):
    """1 / (1 + exp(-x))"""

    def forward(self, input: Tensor) -> Tensor:
        return F.sigmoid(input)


class LogSigmoid(Module):
    """ln sigmoid(x)"""

    def forward(self, input: Tensor) -> Tensor:
        return F.logsigmoid(input)


class Tanh(Module):
    """tanh(x)"""

    def forward(self, input: Tensor) -> Tensor:
        return F.tanh(input)


class Tanhshrink(Module):
    """x - tanh(x)"""

    def forward(self, input: Tensor) -> Tensor:
        return F.tanhshrink(input)


class Softsign(Module):
    """x / (1 + |x|)"""

    def forward(self, input: Tensor) -> Tensor:
        return F.softsign(input)


class Softplus(Module):
    """ln(1 + exp(beta · x)) / beta; x itself where beta · x > threshold, for numerical stability."""

    def __init__(self, beta: float = 1.0, threshold: float = 20.0) -> None:
        super().__init__()
        self.beta = beta
        self.threshold = threshold

    def forward(self, input: Tensor) -> Tensor:
        return F.softplus(input, self.beta, self.threshold)

    def extra_repr(self) -> str:
        return f"beta={self.beta}, threshold={self.threshold}"


class ELU(Module):
    """x where x > 0, elsewhere alpha · (exp(x) - 1).  Source: Clevert et al. 2015, arXiv:1511.07289"""

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__()
        self.alpha = alpha
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.elu(input, self.alpha, self.inplace)

    def extra_repr(self) -> str:
        return _with_inplace(f"alpha={self.alpha}", self.inplace)


class CELU(Module):
    """max(x, 0) + min(0, alpha · (exp(x / alpha) - 1)).  Source: Barron 2017, arXiv:1704.07483"""

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__()
        self.alpha = alpha
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.celu(input, self.alpha, self.inplace)

    def extra_repr(self) -> str:
        return _with_inplace(f"alpha={self.alpha}", self.inplace)


class SELU(_Inplace):
    """ELU, scaled to preserve mean 0 and variance 1.  Source: Klambauer et al. 2017, arXiv:1706.02515"""

    def forward(self, input: Tensor) -> Tensor:
        return F.selu(input, self.inplace)


class GELU(Module):
    """x · Φ(x), where Φ is the cumulative distribution function of the standard normal.

    Args:    approximate: "none", or "tanh" for the tanh approximation
    Source:  Hendrycks & Gimpel 2016, arXiv:1606.08415
    """

    def __init__(self, approximate: str = "none") -> None:
        super().__init__()
        self.approximate = approximate

    def forward(self, input: Tensor) -> Tensor:
        return F.gelu(input, approximate=self.approximate)

    def extra_repr(self) -> str:
        return f"approximate={self.approximate!r}"


class SiLU(_Inplace):
    """x · sigmoid(x)"""

    def forward(self, input: Tensor) -> Tensor:
        return F.silu(input, inplace=self.inplace)


class Mish(_Inplace):
    """x · tanh(softplus(x)).  Source: Misra 2019, arXiv:1908.08681"""

    def forward(self, input: Tensor) -> Tensor:
        return F.mish(input, inplace=self.inplace)


# ------------------------------------------------------------------------------------------------------- along a dim


class GLU(Module):
    """Multiply the first half of the input along `dim` by the sigmoid of the second half.

    Shapes:  (..., 2 N, ...) -> (..., N, ...)
    Source:  Dauphin et al. 2016, arXiv:1612.08083
    """

    def __init__(self, dim: int = -1) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, input: Tensor) -> Tensor:
        return F.glu(input, self.dim)

    def extra_repr(self) -> str:
        return f"dim={self.dim}"


class _AlongDim(Module):
    """Base of functions along one dimension."""

    def __init__(self, dim: int | None = None) -> None:
        super().__init__()
        self.dim = dim

    def extra_repr(self) -> str:
        return f"dim={self.dim}"


class Softmax(_AlongDim):
    """exp(x) divided by its sum along `dim`."""

    def forward(self, input: Tensor) -> Tensor:
        return F.softmax(input, self.dim)


class LogSoftmax(_AlongDim):
    """ln softmax(x) along `dim`."""

    def forward(self, input: Tensor) -> Tensor:
        return F.log_softmax(input, self.dim)


class Softmin(_AlongDim):
    """softmax(-x) along `dim`."""

    def forward(self, input: Tensor) -> Tensor:
        return F.softmin(input, self.dim)


class Softmax2d(Module):
    """Softmax over the channels at each spatial location.  Shapes: (N, C, H, W) or (C, H, W) -> the same"""

    def forward(self, input: Tensor) -> Tensor:
        if input.ndim not in (3, 4):
            raise ArgumentError(f"Softmax2d: expected (N, C, H, W) or (C, H, W), got {tuple(input.shape)}")
        return F.softmax(input, -3)
