"""GGUF files of models whose keys and values are linear in latents.

Converters write that layer in two parts, `attn_k_b` (H, R, n), transposed, and `attn_v_b` (H, v, R); older ones wrote
`attn_kv_b` (H (n + v), R), as checkpoints have it. Letters: H heads, R width of latents, n and v widths of a head.

Source:  llama.cpp's `conversion/deepseek.py`
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tallow.errors import CheckpointError
from tallow.io.gguf import GGUF, TensorInfo
from tallow.models.gguf.names import LAYER

KEYS, VALUES, BOTH = "attn_k_b.weight", "attn_v_b.weight", "attn_kv_b.weight"


class LatentsFile(GGUF):
    """A file whose layers for keys and for values are one layer in float32, as in checkpoints.

    Args:    file: with the parts of some layers, or none
    Raises:  CheckpointError for parts whose shapes do not fit
    """

    def __init__(self, file: GGUF) -> None:
        self.__dict__ |= vars(file)
        self._parts: dict[str, tuple[str, str]] = {}
        infos = dict(self._infos)
        for name in self._infos:
            layer, _, kind = name.removeprefix(f"{LAYER}.").partition(".")
            values = f"{LAYER}.{layer}.{VALUES}"
            if kind != KEYS or values not in infos:
                continue
            k_HRn, v_HvR = infos.pop(name).shape, infos.pop(values).shape
            if len(k_HRn) != 3 or len(v_HvR) != 3 or (k_HRn[0], k_HRn[1]) != (v_HvR[0], v_HvR[2]):
                raise CheckpointError(f"{self.name}: {name} of shape {k_HRn} and {values} of {v_HvR} do not fit")
            both = f"{LAYER}.{layer}.{BOTH}"
            infos[both] = TensorInfo("F32", (k_HRn[0] * (k_HRn[2] + v_HvR[1]), k_HRn[1]), 0)
            self._parts[both] = name, values
        self._infos = infos
        self._file = file

    def get_array(self, name: str) -> np.ndarray[Any, Any]:
        if name not in self._parts:
            return super().get_array(name)
        k_HRn, v_HvR = (self._file[part].float().numpy() for part in self._parts[name])
        rows = np.concatenate([k_HRn.swapaxes(1, 2), v_HvR], axis=1).reshape(self.info(name).shape)
        if not np.isfinite(rows).all():
            raise CheckpointError(
                f"{self.name}: tensor {self._parts[name][0]!r:.200} or the one of values is infinite or NaN",
                hint="list all such tensors, and download the file again: tallow inspect --check FILE",
            )
        return rows
