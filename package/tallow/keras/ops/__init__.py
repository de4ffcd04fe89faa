"""`keras.ops`: functions of tensors, and of symbolic tensors, for which they make layers.

    y = keras.ops.softmax(keras.ops.matmul(q, keras.ops.transpose(k, (0, 2, 1))))

Axes, names and defaults are NumPy's, as in Keras; see `tallow.keras.functions` for what each does.
"""

from __future__ import annotations

from tallow.keras.functions import FUNCTIONS
from tallow.keras.ops.both import offered
from tallow.names import names_of

_OFFERED = offered(FUNCTIONS)
_MODULES = {name: f"tallow.keras.ops.{name}" for name in ("image", "linalg", "nn", "numpy")}

__all__ = list(_OFFERED)

__getattr__, __dir__ = names_of(__name__, _MODULES, _OFFERED)
