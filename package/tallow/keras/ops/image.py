"""`keras.ops.image`: functions of images."""

from __future__ import annotations

from tallow.keras.functions import IMAGE
from tallow.keras.ops.both import offered
from tallow.names import names_of

_OFFERED = offered(IMAGE)

__all__ = list(_OFFERED)

__getattr__, __dir__ = names_of(__name__, offered=_OFFERED)
