"""Losses."""

from __future__ import annotations

import numpy as np

from cases import case, functional, integers, normal

x, y = normal(6, 5), integers(6, high=5)
y_ignoring = np.where(y == 3, -100, y)

CE = "cross_entropy_of_classes"
case(CE, functional("cross_entropy"), x, y)
case(CE, functional("cross_entropy", reduction="sum"), x, y)
case(CE, functional("cross_entropy", reduction="none"), x, y_ignoring)
case(CE, functional("cross_entropy", ignore_index=2), x, y)
case(CE, functional("cross_entropy"), x, y_ignoring)
case(CE, lambda m, x, y: m.nn.functional.cross_entropy(x[0], y[0]), x, y)
case(CE, lambda m, x, y, w: m.nn.functional.cross_entropy(x, y, w.to(x.dtype)), x, y_ignoring, integers(5))
case(CE, functional("cross_entropy", label_smoothing=0.1), x, y_ignoring)
case(
    CE,
    lambda m, x, y, w: m.nn.functional.cross_entropy(x, y, w.to(x.dtype), label_smoothing=0.3),
    x,
    y_ignoring,
    integers(5),
)
case(
    CE,
    lambda m, x, y, w: m.nn.functional.cross_entropy(x, y, w.to(x.dtype), label_smoothing=0.3, reduction="none"),
    normal(2, 5, 3, 2),
    integers(2, 3, 2, high=5),
    integers(5),
)
case(CE, functional("cross_entropy"), normal(2, 5, 3), integers(2, 3, high=5))
case(CE, lambda m, x, y: m.nn.functional.cross_entropy(100 * x, y), x, y)
