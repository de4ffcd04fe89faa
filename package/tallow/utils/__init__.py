"""Where PyTorch has `torch.utils`."""

from tallow.names import names_of
from tallow.utils import data

__all__ = ["checkpoint", "data"]

__getattr__, __dir__ = names_of(__name__, later={"checkpoint": "tallow.utils.checkpoint"})
