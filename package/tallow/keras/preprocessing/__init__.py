"""`keras.preprocessing`, for older programs."""

from __future__ import annotations

from tallow.keras.preprocessing import image, sequence
from tallow.keras.utils import timeseries_dataset_from_array

__all__ = ["image", "sequence", "timeseries_dataset_from_array"]
