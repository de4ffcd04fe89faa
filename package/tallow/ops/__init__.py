"""Ops: functions of arrays, each returning its value and its backward, one file a family."""

from tallow.ops import arithmetic
from tallow.ops.table import OPS

__all__ = ["OPS", "arithmetic"]
