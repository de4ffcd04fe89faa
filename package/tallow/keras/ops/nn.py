"""`keras.ops.nn`: functions of networks."""

from __future__ import annotations

from tallow.keras.functions import NN
from tallow.keras.ops.both import offered
from tallow.names import names_of

_OFFERED = offered(NN)

__all__ = list(_OFFERED)

__getattr__, __dir__ = names_of(__name__, offered=_OFFERED)
