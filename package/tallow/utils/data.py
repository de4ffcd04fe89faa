"""Alias of `tallow.data`, as PyTorch's `torch.utils.data`."""

from tallow.data import *  # noqa: F403
from tallow.data import __all__, dataloader, dataset, distributed, sampler  # noqa: F401
from tallow.lazy_names import names_of

__getattr__, __dir__ = names_of(__name__)
