"""Compiled implementations of ops, and the table that chooses between them and the array code.

kernels.run("softmax", x)             call the best kernel; ops use this
kernels.explain("softmax", x)         print which kernel that is, and why not the others
with kernels.require("native"): ...   raise instead of falling back
with kernels.require_fused(): ...     raise where a model runs its modules instead of its fused blocks
with kernels.off(): ...               use the array code only
kernels.info()                        the loaded library and its kernels
"""

from tallow.kernels.fallback import require_fused
from tallow.kernels.library import KernelInfo, info, provide
from tallow.kernels.table import (
    KERNELS,
    PREFERENCE,
    explain,
    kernel,
    off,
    pick,
    register_provider,
    require,
    run,
)
from tallow.lazy_names import names_of

__all__ = [
    "KERNELS",
    "PREFERENCE",
    "KernelInfo",
    "explain",
    "info",
    "kernel",
    "off",
    "pick",
    "register_provider",
    "require",
    "require_fused",
    "run",
]

__getattr__, __dir__ = names_of(__name__)

register_provider("cpu", provide)
