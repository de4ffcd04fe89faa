"""The buffer of a layer with quantised blocks, which are arranged for products."""

from __future__ import annotations

import mmap
from contextlib import suppress
from typing import Any, cast

import numpy as np

from tallow import devices, dtypes, kernels
from tallow.core.size import Size
from tallow.dtypes import Array
from tallow.kernels.quantized.block_matrix import BlockMatrix
from tallow.kernels.quantized.quantized_matrix import QuantizedMatrix
from tallow.nn.parameter import Buffer

PAGE_OUT = 21  # Linux's MADV_PAGEOUT, which Python has no name for


class BlockBuffer(Buffer):
    """Blocks of a matrix. The tensor is always as in a file, wherever it is read, saved, copied or moved.

    Compiled kernels may multiply faster by interleaved rows, so the first product makes a copy of these. If the rows of
    the file lie in mapped memory, they stay there, and their pages are given back to the system. Otherwise they are
    dropped, and `array` is separated at each access: new memory. Either is read-only, because a write would not reach
    the products; `load_state_dict` replaces such an array.

    On a GPU the first use makes codes and scales of the blocks, which the memory of the host keeps; `array` is a copy
    of these on the GPU at each access.

    Attributes:
        held: what products read: the rows of the file, or the first array of what they were arranged to
    """

    held: Array
    _rows: Array | None  # of the file, in the memory of the host, beside what they were arranged to
    _arranged: QuantizedMatrix | None

    @property
    def array(self) -> Array:
        """The rows as in a file."""
        if self._arranged is None:
            return self.held
        if self._rows is not None:
            return devices.move(self._rows, self.device)
        rows = self._arranged.in_blocks().blocks
        rows.flags.writeable = False
        return rows

    @array.setter
    def array(self, value: Array) -> None:
        self.held, self._rows, self._arranged = value, None, None

    @property
    def shape(self) -> Size:
        """The rows of the matrix, and the bytes of one."""
        return Size((self.held if self._rows is None else self._rows).shape)

    @property
    def dtype(self) -> dtypes.dtype:
        """uint8."""
        return dtypes.uint8

    @property
    def device(self) -> devices.device:
        """The device of the blocks."""
        return devices.device_of(self.held)

    def stored(self, format: str) -> BlockMatrix:
        """Return the matrix on the host, as in a file or with interleaved rows."""
        if self._rows is not None:
            return BlockMatrix(self._rows, format)
        if self._arranged is not None:
            return cast(
                "BlockMatrix", self._arranged
            )  # with interleaved rows: codes and scales have `_rows` beside them
        return BlockMatrix(devices.to_host(self.held), format)

    def matrix(self, format: str) -> QuantizedMatrix:
        """Return the matrix on its device; on the host as in a file or with interleaved rows, elsewhere arranged."""
        if isinstance(self.held, np.ndarray):
            return self._arranged or BlockMatrix(self.held, format)
        return self.for_products(format)

    def for_products(self, format: str) -> QuantizedMatrix:
        """Return the matrix as products read it, which is arranged first if that pays."""
        if self._arranged is None:
            matrix: QuantizedMatrix = kernels.run("arrange_blocks", self.held, format)
            if matrix.memory is self.held:
                return matrix
            on_host = isinstance(self.held, np.ndarray)
            self._rows = _mapped(self.held) if on_host else devices.to_host(self.held)
            self.held, self._arranged = matrix.memory, matrix
        return self._arranged

    def _attributes(self) -> dict[str, Any]:
        ours = ("held", "_rows", "_arranged")
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
