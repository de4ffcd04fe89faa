"""GGUF files of models whose keys and values are linear in latents.

Converters write that layer in two parts, `attn_k_b` (H, R, n), transposed, and `attn_v_b` (H, v, R); older ones wrote
`attn_kv_b` (H (n + v), R), as checkpoints have it. Letters: H heads, R width of latents, n and v widths of a head.

Source:  llama.cpp's `conversion/deepseek.py`
"""

from __future__ import annotations

from functools import partial

import numpy as np

from tallow.errors import CheckpointError
from tallow.io.gguf import GGUF
from tallow.models.gguf.derived import DerivedFile, Values, stored
from tallow.models.gguf.names import LAYER

KEYS, VALUES, BOTH = "attn_k_b.weight", "attn_v_b.weight", "attn_kv_b.weight"


class LatentsFile(DerivedFile):
    """A file whose layers for keys and for values are one layer in float32, as in checkpoints.

    Args:    file: with the parts of some layers, or none
    Raises:  CheckpointError for parts whose shapes do not fit
    """

    def __init__(self, file: GGUF) -> None:
        super().__init__(file)
        for name in file:
            layer, _, kind = name.removeprefix(f"{LAYER}.").partition(".")
            values = f"{LAYER}.{layer}.{VALUES}"
            if kind != KEYS or values not in file:
                continue
            k_HRn, v_HvR = self._infos.pop(name).shape, self._infos.pop(values).shape
            if len(k_HRn) != 3 or len(v_HvR) != 3 or (k_HRn[0], k_HRn[1]) != (v_HvR[0], v_HvR[2]):
                raise CheckpointError(f"{self.name}: {name} of shape {k_HRn} and {values} of {v_HvR} do not fit")
            shape = k_HRn[0] * (k_HRn[2] + v_HvR[1]), k_HRn[1]
            self.add(f"{LAYER}.{layer}.{BOTH}", shape, partial(_both, keys=name, values=values))


def _both(file: GGUF, keys: str, values: str) -> Values:
    k_HRn, v_HvR = stored(file, keys), stored(file, values)
    rows: Values = np.concatenate([k_HRn.swapaxes(1, 2), v_HvR], axis=1)
    if not np.isfinite(rows).all():
        raise CheckpointError(
            f"{file.name}: tensor {keys!r:.200} or the one of values is infinite or NaN",
            hint="list all such tensors, and download the file again: tallow inspect --check FILE",
        )
    return rows
