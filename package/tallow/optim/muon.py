"""Muon."""

from __future__ import annotations

from collections.abc import Iterable
from math import sqrt
from typing import Any

from tallow.devices import array_module
from tallow.dtypes import Array, bfloat16, cast, widen
from tallow.errors import ArgumentError
from tallow.optim.moments import move_average
from tallow.optim.optimizer import Group, Optimizer
from tallow.optim.options import check_not_negative

LEARNING_RATES = (None, "original", "match_rms_adamw")
MOST_ITERATIONS = 99


class Muon(Optimizer):
    """Orthogonalized momentum for the matrices of hidden layers; use AdamW for embeddings, heads and biases.

    B = momentum · B + (1 - momentum) · ∇
    u = orthogonal(momentum · B + (1 - momentum) · ∇), or orthogonal(B) without nesterov
    p = p - lr · weight_decay · p
    p = p - s · lr · u

    For a matrix of (N, M), s is √max(1, N / M), or 0.2 √max(N, M) with adjust_lr_fn="match_rms_adamw", which allows
    learning rates tuned for AdamW.

    Args:    as torch.optim.Muon

    Dtypes:  orthogonalization rounds to bfloat16, whose error is far below the iteration's own
    Raises:  ArgumentError for a parameter that is not two-dimensional
    Source:  Jordan et al. 2024, https://kellerjordan.github.io/posts/muon; Liu et al. 2025, arXiv:2502.16982 for
             match_rms_adamw
    """

    MOMENTS = ("momentum_buffer",)

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        weight_decay: float = 0.1,
        momentum: float = 0.95,
        nesterov: bool = True,
        ns_coefficients: tuple[float, float, float] = (3.4445, -4.7750, 2.0315),
        eps: float = 1e-7,
        ns_steps: int = 5,
        adjust_lr_fn: str | None = None,
    ) -> None:
        check_not_negative(lr=lr, momentum=momentum, weight_decay=weight_decay)
        if adjust_lr_fn not in LEARNING_RATES:
            raise ArgumentError(f"Adjust learning rate function {adjust_lr_fn} is not supported")
        if not 0 <= ns_steps <= MOST_ITERATIONS:
            raise ArgumentError(
                f"Number of steps must be less than {MOST_ITERATIONS + 1} for computational efficiency, not {ns_steps}"
            )
        if len(ns_coefficients) != 3:
            raise ArgumentError(f"Coefficients must be a tuple of exactly 3 values, not {ns_coefficients}")
        defaults = {
            "lr": lr, "weight_decay": weight_decay, "momentum": momentum, "nesterov": nesterov,
            "ns_coefficients": ns_coefficients, "eps": eps, "ns_steps": ns_steps, "adjust_lr_fn": adjust_lr_fn,
        }  # fmt: skip
        super().__init__(params, defaults)

    def add_param_group(self, param_group: Group) -> None:
        super().add_param_group(param_group)
        for param in self.param_groups[-1]["params"]:
            if param.ndim != 2:
                del self.param_groups[-1]
                raise ArgumentError(
                    f"Muon only supports 2D parameters whereas we found a parameter with size: {tuple(param.shape)}",
                    hint="pass the other parameters to a separate AdamW",
                )

    def update(self, param: Array, grad: Array, state: dict[str, Array], group: Group) -> None:
        momentum, lr = group["momentum"], float(group["lr"])
        buffer = state.setdefault("momentum_buffer", array_module(param).zeros_like(param))
        move_average(buffer, grad, 1 - momentum)
        change = grad + momentum * (buffer - grad) if group["nesterov"] else buffer
        change = _orthogonal(change, group["ns_coefficients"], group["ns_steps"], group["eps"])
        param *= 1 - lr * group["weight_decay"]
        param -= lr * _adjustment(group["adjust_lr_fn"], *param.shape) * change.astype(param.dtype, copy=False)


def _adjustment(rule: str | None, rows: int, columns: int) -> float:
    """Return the factor of the learning rate that makes the update size independent of the matrix shape."""
    return 0.2 * sqrt(max(rows, columns)) if rule == "match_rms_adamw" else sqrt(max(1.0, rows / columns))


def _orthogonal(matrix: Array, coefficients: tuple[float, float, float], steps: int, eps: float) -> Array:
    """Return about U Vᵀ of the singular value decomposition U S Vᵀ, in float32; S becomes values from 0.5 to 1.5.

    X = a X + (b A + c A²) X,  A = X Xᵀ,  for `steps` iterations: a Newton-Schulz iteration with odd polynomials of X.
    It requires singular values of at most 1, hence the division by the norm. Results are rounded to bfloat16 where
    PyTorch rounds them.
    """
    xp = array_module(matrix)
    a, b, c = coefficients
    is_tall = matrix.shape[0] > matrix.shape[1]
    x = _round_to_bfloat16(matrix.T if is_tall else matrix)
    x = _round_to_bfloat16(x / xp.maximum(_round_to_bfloat16(xp.sqrt((x * x).sum())), eps))
    for _ in range(steps):
        square = _round_to_bfloat16(x @ x.T)
        polynomial = _round_to_bfloat16(b * square + c * (square @ square))
        x = _round_to_bfloat16(a * x + polynomial @ x)
    return x.T if is_tall else x


def _round_to_bfloat16(array: Array) -> Array:
    """Round to bfloat16; the result is float32."""
    return widen(cast(array, bfloat16))
