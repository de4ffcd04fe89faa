"""SparseAdam."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tallow.dtypes import Array
from tallow.errors import ArgumentError, GraphError
from tallow.optim.optimizer import Group, Optimizer
from tallow.optim.options import check_betas, check_not_negative


class SparseAdam(Optimizer):
    """Adam for sparse gradients, which tallow lacks: a step raises, as PyTorch's does for dense gradients.

    Args:    as torch.optim.SparseAdam

    Raises:  GraphError in the first step
    """

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
            hint="tallow's gradients are always dense; use tallow.optim.Adam",
        )
