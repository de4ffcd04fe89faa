"""Alias of `tallow.data`, as PyTorch's `torch.utils.data`."""

from tallow.core.lazy_names import names_of
from tallow.data import *  # noqa: F403
from tallow.data import __all__, dataloader, dataset, distributed, sampler  # noqa: F401

__getattr__, __dir__ = names_of(__name__)
