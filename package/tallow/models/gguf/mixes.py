"""GGUF files of RWKV-7, whose tensors have other shapes and names than the model's.

`time_mix_lerp_fused` holds the six shares of the position before, (6, 1, 1, D); `time_mix_r_k` is a vector; and layer 0
has values of its own in tensors that nothing reads.

Source:  llama.cpp's `conversion/rwkv.py`
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tallow.errors import CheckpointError
from tallow.io.gguf import GGUF, TensorInfo
from tallow.models.decoders.rwkv7_formats import MIXES
from tallow.models.gguf.names import LAYER

SHARES, FACTORS = ".time_mix_lerp_fused.weight", ".time_mix_r_k.weight"
UNREAD = tuple(f"{LAYER}.0.time_mix_v{part}.weight" for part in range(3))


class MixesFile(GGUF):
    """A file with a tensor for each share, with a row for each head of the factors, in float32.

    Args:
        file: of an RWKV-7.
        head: the width of a head.

    Raises:  CheckpointError for a tensor whose shape does not fit
    """

    def __init__(self, file: GGUF, head: int) -> None:
        self.__dict__ |= vars(file)
        self._file = file
        self._parts: dict[str, tuple[str, int | None]] = {}
        infos = {name: info for name, info in self._infos.items() if name not in UNREAD}
        for name in [name for name in infos if name.endswith((SHARES, FACTORS))]:
            shape = infos.pop(name).shape
            width = shape[-1] if shape else 0
            if name.endswith(SHARES):
                fits = width > 0 and shape[0] == len(MIXES) and int(np.prod(shape)) == len(MIXES) * width
                named = {name.replace("_fused", f"_{mix}"): i for i, mix in enumerate(MIXES)}
                self._parts |= {part: (name, i) for part, i in named.items()}
                infos |= {part: TensorInfo("F32", (1, 1, width), 0) for part in named}
            else:
                fits = len(shape) == 1 and head > 0 and width % head == 0
                self._parts[name] = name, None
                infos[name] = TensorInfo("F32", (width // max(head, 1), head), 0)
            if not fits:
                raise CheckpointError(f"{self.name}: tensor {name!r:.200} has the shape {tuple(shape)}")
        self._infos = infos

    def get_array(self, name: str) -> np.ndarray[Any, Any]:
        if name not in self._parts:
            return super().get_array(name)
        stored, row = self._parts[name]
        values = self._file[stored].float().numpy()
        return (values if row is None else values[row]).reshape(self.info(name).shape)
