"""Python's part of the check of a shared memory, called by shared-boot.js."""

from __future__ import annotations

import os
from typing import Any

import numpy as np


def round_trip(text: str, data: Any) -> tuple[str, bytes, bytes]:
    """Return the text, the bytes after a copy in NumPy's memory, and as many random bytes."""
    array = np.frombuffer(data.to_bytes(), np.uint8)
    return text, array.copy().tobytes(), os.urandom(array.size)
