"""How the numbers of several processes become one."""

from __future__ import annotations

from enum import Enum


class ReduceOp(Enum):
    """As torch.distributed.ReduceOp. AVG is the sum over the number of processes; for floats only."""

    SUM = "sum"
    AVG = "avg"
    PRODUCT = "prod"
    MIN = "min"
    MAX = "max"
    BAND = "band"
    BOR = "bor"
    BXOR = "bxor"
