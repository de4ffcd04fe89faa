"""Scaling by a dropout mask, and drawing the mask on a device."""

from __future__ import annotations

import math

import numpy as np

from tallow.devices import array_module
from tallow.kernels import kernel, run
from tallow.ops.philox import philox
from tallow.ops.table import Array, Index, Result, op


@op("", halves=True, batched="elementwise")
def scaled_mask(input: Array, keep: Index, scale: float) -> Result:
    """Return input ⊙ keep · scale, where `keep` are booleans that broadcast to input.

    Only the booleans are saved for backward: one byte per element.
    """
    xp = array_module(input)
    value = run("scaled_mask", input, keep, scale)
    return value, lambda g: (run("scaled_mask", xp.asarray(g), keep, scale),)


scaled_mask.piecewise()


@kernel("scaled_mask", "array", round_like=0)
def _scaled_mask(x: Array, keep: Array, scale: float) -> Array:
    return x * keep * scale


@kernel("random_keep", "array")
def random_keep(like: Array, shape: tuple[int, ...], p: float, key: int, first: int) -> Array:
    """Return booleans on the device of `like`, each False with probability p: where a Philox word is below p · 2³².

    Args:  key, first: from the counter that tallow.random.Generator.reserve set aside, one value for four elements
    """
    xp, size = array_module(like), math.prod(shape)
    counter = xp.arange(-(-size // 4), dtype=np.uint64) + np.uint64(first)
    zero = xp.zeros_like(counter)
    words = philox((counter & np.uint64(0xFFFFFFFF), counter >> np.uint64(32), zero, zero), key)
    return (xp.stack(words, axis=1).reshape(-1)[:size] >= np.uint64(math.ceil(p * 2**32))).reshape(shape)
