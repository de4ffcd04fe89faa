"""torch.quasirandom: Sobol's sequences, by the direction numbers of the package scipy."""

from __future__ import annotations

import importlib
from functools import cache
from typing import Any, ClassVar

import numpy as np

import tallow as tl
from tallow.core.tensor import Tensor, wrap
from tallow.errors import ArgumentError, UnsupportedError

__all__ = ["SobolEngine"]

Ints = np.ndarray[Any, np.dtype[np.int64]]


class SobolEngine:
    """A Sobol sequence: points that fill the unit cube more evenly than random ones.

    The points are PyTorch's. A scrambled sequence is of the same kind, with random numbers of tallow.

    Args:
        dimension: of the points, at most 21201.
        scramble: permute the points at random, so that the means over sequences are those over the cube.
        seed: of the scrambling.

    Raises: ArgumentError for another dimension; UnsupportedError without scipy.

    Source: Joe and Kuo, "Constructing Sobol sequences with better two-dimensional projections", 2008; the scrambling
        of Matousek, "On the L2-discrepancy for anchored boxes", 1998.
    """

    MAXBIT: ClassVar[int] = 30
    MAXDIM: ClassVar[int] = 21201

    def __init__(self, dimension: int, scramble: bool = False, seed: int | None = None) -> None:
        if not 1 <= dimension <= self.MAXDIM:
            raise ArgumentError(
                f"Supported range of dimensionality for SobolEngine is [1, {self.MAXDIM}], got {dimension}"
            )
        self.dimension, self.scramble, self.seed = dimension, scramble, seed
        self.num_generated = 0
        self._numbers = _direction_numbers(dimension, self.MAXBIT)
        self._shift: Ints = np.zeros(dimension, np.int64)
        if scramble:
            self._scramble()
        self._last = self._shift.copy()

    def _scramble(self) -> None:
        """Multiply the direction numbers by random lower triangular matrices of bits, and draw a shift."""
        generator = tl.Generator()
        generator.seed() if self.seed is None else generator.manual_seed(self.seed)
        bits = self.MAXBIT
        powers = 1 << np.arange(bits)
        shift = tl.randint(2, (self.dimension, bits), generator=generator, device="cpu").numpy()
        self._shift = shift @ powers
        matrices = tl.randint(2, (self.dimension, bits, bits), generator=generator, device="cpu").tril().numpy()
        matrices[:, np.arange(bits), np.arange(bits)] = 1
        high_first = self._numbers[:, :, None] >> np.arange(bits - 1, -1, -1) & 1  # (D, numbers, bits)
        self._numbers = (np.einsum("dij,dnj->dni", matrices, high_first) & 1) @ powers[::-1]

    def _advance(self, n: int) -> Ints:
        """Return the next `n` points as integers, after the first one."""
        places = np.arange(self.num_generated, self.num_generated + n)
        zero = np.log2(~places & (places + 1)).astype(np.int64)  # the position of the lowest zero bit
        steps = self._numbers[:, zero].T
        points: Ints = np.bitwise_xor.accumulate(np.concatenate([self._last[None], steps]), axis=0)
        self._last = points[-1]
        self.num_generated += n
        return points

    def draw(self, n: int = 1, out: Tensor | None = None, dtype: Any = None) -> Tensor:
        """Return the next `n` points, of shape (n, dimension)."""
        dtype = tl.get_default_dtype() if dtype is None else dtype
        points = self._advance(n)[:-1]
        result = wrap(points.astype(np.float64) / 2**self.MAXBIT).to(dtype)
        return result if out is None else out.resize_(*result.shape).copy_(result)

    def draw_base2(self, m: int, out: Tensor | None = None, dtype: Any = None) -> Tensor:
        """Return the next 2 ** m points. Raises: ArgumentError if the points so far are then not a power of two."""
        total = self.num_generated + 2**m
        if total & (total - 1):
            raise ArgumentError(
                f"{self.num_generated} points have been drawn, {total} would follow, which is no power of two",
                hint="call draw(n), or reset() first",
            )
        return self.draw(2**m, out, dtype)

    def reset(self) -> SobolEngine:
        """Go back to the first point."""
        self._last, self.num_generated = self._shift.copy(), 0
        return self

    def fast_forward(self, n: int) -> SobolEngine:
        """Skip `n` points."""
        self._advance(n)
        return self

    def __repr__(self) -> str:
        settings = [f"dimension={self.dimension}"]
        settings += ["scramble=True"] * self.scramble + [f"seed={self.seed}"] * (self.seed is not None)
        return f"{type(self).__name__}({', '.join(settings)})"


@cache
def _direction_numbers(dimension: int, bits: int) -> Ints:
    """Return the direction numbers (dimension, bits): number k is the difference of point 2^k and the one before."""
    try:
        qmc = importlib.import_module("scipy.stats.qmc")  # optional
    except ImportError as error:
        raise UnsupportedError("SobolEngine needs the package scipy", hint="pip install scipy") from error
    numbers = np.empty((dimension, bits), np.int64)
    for k in range(bits):
        sequence = qmc.Sobol(dimension, scramble=False, bits=bits)
        pair = (sequence.fast_forward(2**k - 1) if k else sequence).random(2)
        before, after = (pair * 2**bits).astype(np.int64)
        numbers[:, k] = before ^ after
    return numbers
