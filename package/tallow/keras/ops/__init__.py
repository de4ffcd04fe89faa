"""`keras.ops`: functions of tensors; with symbolic tensors they create layers.

    y = keras.ops.softmax(keras.ops.matmul(q, keras.ops.transpose(k, (0, 2, 1))))

Axes, names and defaults are NumPy's, as in Keras; see `tallow.keras.functions` for each function.
"""

from __future__ import annotations

from tallow.keras.functions import FUNCTIONS
from tallow.keras.ops.dispatch import with_symbolic
from tallow.lazy_names import names_of

_PUBLIC = with_symbolic(FUNCTIONS)
_MODULES = {name: f"tallow.keras.ops.{name}" for name in ("image", "linalg", "nn", "numpy")}

__all__ = list(_PUBLIC)

__getattr__, __dir__ = names_of(__name__, _MODULES, _PUBLIC)
