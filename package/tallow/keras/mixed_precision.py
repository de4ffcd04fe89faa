"""`keras.mixed_precision`, for older programs."""

from __future__ import annotations

from tallow.keras.dtype_policies import DTypePolicy, dtype_policy, set_dtype_policy
from tallow.keras.optimizers import LossScaleOptimizer
from tallow.lazy_names import names_of

Policy = DTypePolicy
global_policy, set_global_policy = dtype_policy, set_dtype_policy

__all__ = [
    "DTypePolicy",
    "LossScaleOptimizer",
    "Policy",
    "dtype_policy",
    "global_policy",
    "set_dtype_policy",
    "set_global_policy",
]

__getattr__, __dir__ = names_of(__name__)
