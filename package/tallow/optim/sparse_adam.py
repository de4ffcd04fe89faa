"""SparseAdam."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tallow.devices import array_module
from tallow.dtypes import Array
from tallow.errors import ArgumentError, GraphError
from tallow.optim.moments import begin, count, move_average
from tallow.optim.optimizer import Group, Optimizer
from tallow.optim.options import check_betas, check_not_negative


class SparseAdam(Optimizer):
    """Adam for sparse gradients: only the rows that have one change, and so do their moments.

    m = m + (1 - β₁) · (∇ - m),  v = v + (1 - β₂) · (∇² - v)                    of the rows with a gradient
    p = p - lr · √(1 - β₂ᵗ) / (1 - β₁ᵗ) · m / (√v + eps)

    Args:    as torch.optim.SparseAdam

    Raises:  GraphError for dense gradients

    Source:  PyTorch's documentation, torch.optim.SparseAdam; Kingma & Ba 2015, arXiv:1412.6980
    """

    MOMENTS = ("exp_avg", "exp_avg_sq")
    REQUIRED = ("step", *MOMENTS)

    def __init__(
        self,
        params: Iterable[Any],
        lr: Any = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        maximize: bool = False,
    ) -> None:
        check_not_negative(lr=lr, eps=eps)
        if not float(lr) > 0:
            raise ArgumentError(f"Invalid learning rate: {lr}")
        if not eps > 0:
            raise ArgumentError(f"Invalid epsilon value: {eps}")
        check_betas(betas)
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "maximize": maximize})

    def update(self, param: Array, grad: Array, state: dict[str, Array], group: Group) -> None:
        raise GraphError(
            "SparseAdam does not support dense gradients, please consider Adam instead",
            hint="embeddings have sparse gradients with sparse=True",
        )

    def update_rows(self, param: Array, rows: Array, grad: Array, state: dict[str, Array], group: Group) -> None:
        if not state:
            begin(state, param, "exp_avg", "exp_avg_sq")
        step, (beta1, beta2), lr = count(state), group["betas"], float(group["lr"])
        grad = -grad if group["maximize"] else grad
        first, second = state["exp_avg"][rows], state["exp_avg_sq"][rows]
        move_average(first, grad, 1 - beta1)
        move_average(second, grad * grad, 1 - beta2)
        state["exp_avg"][rows], state["exp_avg_sq"][rows] = first, second
        size = lr * (1 - beta2**step) ** 0.5 / (1 - beta1**step)
        param[rows] -= size * (first / (array_module(param).sqrt(second) + group["eps"]))
