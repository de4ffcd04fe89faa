"""tallow's `torch.utils`."""

from tallow.lazy_names import names_of
from tallow.utils import data

__all__ = ["checkpoint", "data"]

__getattr__, __dir__ = names_of(__name__, lazy={"checkpoint": "tallow.utils.checkpoint"})
