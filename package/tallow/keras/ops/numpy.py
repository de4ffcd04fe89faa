"""`keras.ops.numpy`: functions that NumPy also has."""

from __future__ import annotations

from tallow.keras.functions import NUMPY
from tallow.keras.ops.dispatch import with_symbolic
from tallow.lazy_names import names_of

_PUBLIC = with_symbolic(NUMPY)

__all__ = list(_PUBLIC)

__getattr__, __dir__ = names_of(__name__, registry=_PUBLIC)
