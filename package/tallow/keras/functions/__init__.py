"""The functions of `keras.ops`, grouped by Keras' namespaces.

They accept arrays and numbers as well as tensors. `keras.ops` adds support for symbolic tensors.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tallow.keras.functions import (
    arrangement,
    arrays,
    control,
    convolution,
    elements,
    fourier,
    image_motion,
    images,
    linear_algebra,
    neural,
    statistics,
)

Functions = dict[str, Callable[..., Any]]

NUMPY: Functions = elements.NUMPY | arrays.NUMPY | arrangement.NUMPY | statistics.NUMPY | linear_algebra.NUMPY
NN: Functions = neural.NN | convolution.NN
LINALG: Functions = linear_algebra.LINALG | {function.__name__: function for function in arrays.OF_LINALG}
IMAGE: Functions = images.IMAGE | image_motion.IMAGE
FUNCTIONS: Functions = NUMPY | NN | LINALG
for _family in (elements, arrays, arrangement, linear_algebra, fourier, control):  # only in keras.ops
    FUNCTIONS |= _family.CORE
