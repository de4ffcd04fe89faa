"""GGUF files of Qwen3-Next, in which one matrix has the strengths of corrections and the sizes of steps.

`ssm_ba` (2H, D) is ordered by key heads: the rows of the strengths of the value heads that a key head serves, then
those of their steps. Letters: D width, H value heads, G key heads.

Source:  llama.cpp's `conversion/qwen.py`
"""

from __future__ import annotations

from functools import partial

from tallow.errors import CheckpointError
from tallow.io.gguf import GGUF
from tallow.models.gguf.derived import DerivedFile, Values, stored

BOTH, PARTS = "ssm_ba.weight", ("ssm_beta.weight", "ssm_alpha.weight")


class ProjectionsFile(DerivedFile):
    """A file with a matrix of strengths and one of steps, in float32, as the model has them.

    Args:    groups: G
    Raises:  CheckpointError for a matrix whose rows do not fit
    """

    def __init__(self, file: GGUF, groups: int) -> None:
        super().__init__(file)
        for name in [name for name in file if name.endswith(f".{BOTH}")]:
            shape = self._infos.pop(name).shape
            if len(shape) != 2 or groups < 1 or shape[0] % (2 * groups):
                raise CheckpointError(f"{self.name}: tensor {name!r:.200} has the shape {tuple(shape)}")
            for i, part in enumerate(PARTS):
                of_part = name.removesuffix(BOTH) + part
                self.add(of_part, (shape[0] // 2, shape[1]), partial(_rows, both=name, groups=groups, place=i))


def _rows(file: GGUF, both: str, groups: int, place: int) -> Values:
    rows = stored(file, both)
    return rows.reshape(groups, 2, -1, rows.shape[1])[:, place]
