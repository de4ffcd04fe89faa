"""Reduction operations."""

from __future__ import annotations

from enum import Enum


class ReduceOp(Enum):
    """Reduction operations, as torch.distributed.ReduceOp. AVG is the mean over processes, for floats only."""

    SUM = "sum"
    AVG = "avg"
    PRODUCT = "prod"
    MIN = "min"
    MAX = "max"
    BAND = "band"
    BOR = "bor"
    BXOR = "bxor"


# PyTorch's name of its class, in annotations of programs.
setattr(ReduceOp, "RedOpType", ReduceOp)  # noqa: B010 - an Enum has no class attributes that are no members
