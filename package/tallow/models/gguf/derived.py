"""GGUF files in which a model finds tensors of its own shapes and names, computed from those that are stored."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from tallow.io.gguf import GGUF, TensorInfo

Values: TypeAlias = np.ndarray[Any, Any]


class DerivedFile(GGUF):
    """A file with computed tensors, in float32. Subclasses take stored ones out of `_infos`, and add those.

    Args:    file: as it is stored
    """

    def __init__(self, file: GGUF) -> None:
        self.__dict__ |= vars(file)
        self._file = file
        self._infos = dict(self._infos)
        self._computed: dict[str, Callable[[GGUF], Values]] = {}

    def add(self, name: str, shape: tuple[int, ...], compute: Callable[[GGUF], Values]) -> None:
        """Add a tensor.  Args: compute: a function of the stored file; it is called on each access"""
        self._infos[name] = TensorInfo("F32", shape, 0)
        self._computed[name] = compute

    def get_array(self, name: str) -> Values:
        if name not in self._computed:
            return super().get_array(name)
        return np.ascontiguousarray(self._computed[name](self._file).reshape(self.info(name).shape))


def stored(file: GGUF, name: str) -> Values:
    """Return the values of a stored tensor in float32."""
    return file[name].float().numpy()
