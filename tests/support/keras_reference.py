"""Keras with its PyTorch backend, the reference of tests/parity/test_keras_*.py. Skips those tests if it is missing."""

from __future__ import annotations

import os

import pytest

os.environ["KERAS_BACKEND"] = "torch"
keras = pytest.importorskip("keras", reason="Keras, the reference of these tests, is not installed")

# Keras converts PyTorch tensors to NumPy by the `__array__` protocol of NumPy 1.
KERAS_WARNS = "ignore:__array__ implementation doesn't accept a copy keyword:DeprecationWarning"
