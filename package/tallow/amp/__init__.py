"""Mixed precision, as torch.amp: `autocast` lowers the precision of matrix products, `GradScaler` scales the loss."""

from tallow.amp.autocast_mode import (
    autocast,
    custom_bwd,
    custom_fwd,
    get_autocast_dtype,
    is_autocast_available,
    is_autocast_enabled,
)
from tallow.amp.grad_scaler import GradScaler
from tallow.lazy_names import names_of

__all__ = [
    "GradScaler",
    "autocast",
    "custom_bwd",
    "custom_fwd",
    "get_autocast_dtype",
    "is_autocast_available",
    "is_autocast_enabled",
]

__getattr__, __dir__ = names_of(__name__)
