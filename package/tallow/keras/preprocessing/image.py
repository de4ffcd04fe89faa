"""Image functions, which are in `keras.utils` now, and `smart_resize`."""

from __future__ import annotations

from tallow.keras.utils.images import array_to_img, img_to_array, load_img, save_img, smart_resize

__all__ = ["array_to_img", "img_to_array", "load_img", "save_img", "smart_resize"]
