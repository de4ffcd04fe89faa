"""`keras.ops.numpy`: the functions that NumPy has, too."""

from __future__ import annotations

from tallow.keras.functions import NUMPY
from tallow.keras.ops.both import offered
from tallow.names import names_of

_OFFERED = offered(NUMPY)

__all__ = list(_OFFERED)

__getattr__, __dir__ = names_of(__name__, offered=_OFFERED)
