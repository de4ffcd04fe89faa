"""Fast implementations of ops, and the table that chooses between them and the plain array code.

What there is:

    kernels.run("softmax", x)             what an op calls
    kernels.explain("softmax", x)         which kernel that is, and why not the others
    with kernels.require("native"): ...   falling back is an error in here
    with kernels.off(): ...               the plain array code only
    kernels.info()                        which library is loaded, with which kernels
"""

from tallow.kernels.halves import reference
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

__all__ = [
    "KERNELS",
    "PREFERENCE",
    "KernelInfo",
    "explain",
    "info",
    "kernel",
    "off",
    "pick",
    "reference",
    "register_provider",
    "require",
    "run",
]

register_provider("cpu", provide)
