"""Ops: functions of arrays, each returning its value and its backward, one file a family."""

from tallow.ops import addmm, arithmetic, casting, filling, index_put, indexing, joining, matmul, quiet, reduction, scan, shape, sorting
from tallow.ops.table import OPS

__all__ = ["OPS", "addmm", "arithmetic", "casting", "filling", "index_put", "indexing", "joining", "matmul", "quiet", "reduction", "scan", "shape", "sorting"]
