"""Another name for `tallow.data`, where PyTorch has `torch.utils.data`."""

from tallow.data import *  # noqa: F403
from tallow.data import __all__, dataloader, dataset, distributed, sampler  # noqa: F401
from tallow.names import names_of

__getattr__, __dir__ = names_of(__name__)
