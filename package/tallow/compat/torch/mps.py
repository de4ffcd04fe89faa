"""torch.mps: GPUs of Apple, which tallow does not have."""

from tallow.compat import no_device
from tallow.lazy_names import names_of

__getattr__, __dir__ = names_of(__name__, registry=no_device.NAMES)
