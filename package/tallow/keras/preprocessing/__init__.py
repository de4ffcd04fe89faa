"""`keras.preprocessing`, for older programs."""

from __future__ import annotations

from tallow.keras.preprocessing import image, sequence
from tallow.keras.utils import timeseries_dataset_from_array
from tallow.lazy_names import names_of

__all__ = ["image", "sequence", "timeseries_dataset_from_array"]

__getattr__, __dir__ = names_of(__name__)
