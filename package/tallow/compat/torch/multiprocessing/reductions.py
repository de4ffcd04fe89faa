"""torch.multiprocessing.reductions: send tensors to other processes."""

from tallow.compat.torch.multiprocessing import _reduce as reduce_tensor
from tallow.compat.torch.multiprocessing import init_reductions

__all__ = ["init_reductions", "reduce_tensor"]
