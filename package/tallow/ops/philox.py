"""Counter-based random words: equal on every device, and independent of the order of requests.

Source:  Salmon, Moraes, Dror & Shaw 2011, "Parallel random numbers: as easy as 1, 2, 3", Philox 4x32-10
"""

from __future__ import annotations

import numpy as np

from tallow.dtypes import Array

Words = tuple[Array, Array, Array, Array]

ROUNDS = 10
LOW, HALF = np.uint64(0xFFFFFFFF), np.uint64(32)
FACTORS = np.uint64(0xD2511F53), np.uint64(0xCD9E8D57)
STEPS = 0x9E3779B9, 0xBB67AE85


def philox(counter: Words, key: int) -> Words:
    """Return four random words for each counter of four words: arrays of uint64 below 2³²; the key is below 2⁶⁴."""
    a, b, c, d = counter
    low, high = key % 2**32, key >> 32
    for _ in range(ROUNDS):
        first, second = a * FACTORS[0], c * FACTORS[1]
        a, b = (second >> HALF) ^ b ^ np.uint64(low), second & LOW
        c, d = (first >> HALF) ^ d ^ np.uint64(high), first & LOW
        low, high = (low + STEPS[0]) % 2**32, (high + STEPS[1]) % 2**32
    return a, b, c, d
