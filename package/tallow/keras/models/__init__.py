"""Models: Model, Sequential, and what makes copies of them."""

from __future__ import annotations

from tallow.keras.layers import Input
from tallow.keras.models.model import Model
from tallow.keras.models.sequential import Sequential

__all__ = ["Input", "Model", "Sequential"]
