"""GGUF files of Qwen3-Next, in which one matrix has the strengths of corrections and the sizes of steps.

`ssm_ba` (2H, D) is ordered by key heads: the rows of the strengths of the value heads that a key head serves, then
those of their steps. Letters: D width, H value heads, G key heads.

Source:  llama.cpp's `conversion/qwen.py`
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tallow.errors import CheckpointError
from tallow.io.gguf import GGUF, TensorInfo

BOTH, PARTS = "ssm_ba.weight", ("ssm_beta.weight", "ssm_alpha.weight")


class ProjectionsFile(GGUF):
    """A file with a matrix of strengths and one of steps, in float32, as the model has them.

    Args:    groups: G
    Raises:  CheckpointError for a matrix whose rows do not fit
    """

    def __init__(self, file: GGUF, groups: int) -> None:
        self.__dict__ |= vars(file)
        self._file, self._groups = file, groups
        self._parts: dict[str, tuple[str, int]] = {}
        infos = dict(self._infos)
        for name in [name for name in infos if name.endswith(f".{BOTH}")]:
            shape = infos.pop(name).shape
            if len(shape) != 2 or groups < 1 or shape[0] % (2 * groups):
                raise CheckpointError(f"{self.name}: tensor {name!r:.200} has the shape {tuple(shape)}")
            for i, part in enumerate(PARTS):
                of_part = name.removesuffix(BOTH) + part
                infos[of_part] = TensorInfo("F32", (shape[0] // 2, shape[1]), 0)
                self._parts[of_part] = name, i
        self._infos = infos

    def get_array(self, name: str) -> np.ndarray[Any, Any]:
        if name not in self._parts:
            return super().get_array(name)
        both, i = self._parts[name]
        rows = self._file[both].float().numpy()
        by_group = rows.reshape(self._groups, 2, -1, rows.shape[1])
        return np.ascontiguousarray(by_group[:, i]).reshape(self.info(name).shape)
