"""The buffer of a layer with quantised blocks, whose rows are interleaved for products."""

from __future__ import annotations

import mmap
from contextlib import suppress
from typing import Any

import numpy as np

from tallow import devices, dtypes, kernels
from tallow.core.size import Size
from tallow.dtypes import Array
from tallow.kernels.block_matrix import BlockMatrix
from tallow.nn.parameter import Buffer

PAGE_OUT = 21  # Linux's MADV_PAGEOUT, which Python has no name for


class BlockBuffer(Buffer):
    """Blocks of a matrix. The tensor is always as in a file, wherever it is read, saved, copied or moved.

    Compiled kernels may multiply faster by interleaved rows, so the first product makes a copy of these. If the rows of
    the file lie in mapped memory, they stay there, and their pages are given back to the system. Otherwise they are
    dropped, and `array` is separated at each access: new memory. Either is read-only, because a write would not reach
    the products; `load_state_dict` replaces such an array.

    Attributes:
        held: what products read: the rows of the file, or interleaved ones
    """

    held: Array
    _rows: Array | None  # of the file, beside interleaved ones
    _interleaved: BlockMatrix | None

    @property
    def array(self) -> Array:
        """The rows as in a file."""
        if self._interleaved is None:
            return self.held
        if self._rows is None:
            rows = self._interleaved.separated().blocks
            rows.flags.writeable = False
            return rows
        return self._rows

    @array.setter
    def array(self, value: Array) -> None:
        self.held, self._rows, self._interleaved = value, None, None

    @property
    def shape(self) -> Size:
        """The rows of the matrix, and the bytes of one."""
        return Size(self.held.shape)

    @property
    def dtype(self) -> dtypes.dtype:
        """uint8."""
        return dtypes.BY_STORAGE[self.held.dtype]

    @property
    def device(self) -> devices.device:
        """The device of the blocks."""
        return devices.device_of(self.held)

    def matrix(self, format: str) -> BlockMatrix:
        """Return the matrix with the blocks that are held."""
        return self._interleaved or BlockMatrix(self.held, format)

    def for_products(self, format: str) -> BlockMatrix:
        """Return the matrix as products read it, which is interleaved first if that pays."""
        if self._interleaved is None and isinstance(self.held, np.ndarray):
            matrix: BlockMatrix = kernels.run("interleave_blocks", self.held, format)
            if matrix.is_interleaved:
                self._rows = _mapped(self.held)
                self.held, self._interleaved = matrix.blocks, matrix
        return self.matrix(format)

    def _attributes(self) -> dict[str, Any]:
        ours = ("held", "_rows", "_interleaved")
        return {name: value for name, value in super()._attributes().items() if name not in ours}


def _mapped(rows: Array) -> Array | None:
    """Return a read-only view of rows of a mapped file, after giving their pages back; None for other memory."""
    file: Any = rows
    while isinstance(file, np.ndarray):
        file = file.base
    if not isinstance(file, mmap.mmap):
        return None
    view = rows.view()
    view.flags.writeable = False
    start = rows.__array_interface__["data"][0] - np.frombuffer(file, np.uint8).__array_interface__["data"][0]
    first = start // mmap.PAGESIZE * mmap.PAGESIZE
    # Not Linux, or an older one, pages out when memory is short.
    with suppress(AttributeError, OSError):
        file.madvise(PAGE_OUT, first, start + rows.nbytes - first)
    return view
