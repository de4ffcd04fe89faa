"""Keras itself, computing with PyTorch: the reference of tests/parity/test_keras_*.py. Without it they are skipped."""

from __future__ import annotations

import os

import pytest

os.environ["KERAS_BACKEND"] = "torch"
keras = pytest.importorskip("keras", reason="Keras, the reference of these tests, is not installed")

# Keras hands PyTorch's tensors to NumPy in the manner of NumPy 1.
KERAS_WARNS = "ignore:__array__ implementation doesn't accept a copy keyword:DeprecationWarning"
