"""eSpeak NG's voices, where they are installed."""

from __future__ import annotations

import ctypes.util

import pytest
from spoken.espeak import Espeak


def espeak() -> Espeak:
    if ctypes.util.find_library("espeak-ng") is None:
        pytest.skip("eSpeak NG is not installed: apt-get install espeak-ng")
    return Espeak()
