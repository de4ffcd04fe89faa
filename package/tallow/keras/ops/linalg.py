"""`keras.ops.linalg`: linear algebra functions."""

from __future__ import annotations

from tallow.keras.functions import LINALG
from tallow.keras.ops.dispatch import with_symbolic
from tallow.lazy_names import names_of

_PUBLIC = with_symbolic(LINALG)

__all__ = list(_PUBLIC)

__getattr__, __dir__ = names_of(__name__, registry=_PUBLIC)
