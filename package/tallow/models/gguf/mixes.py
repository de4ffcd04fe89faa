"""GGUF files of RWKV-7, whose tensors have other shapes and names than the model's.

`time_mix_lerp_fused` holds the six shares of the position before, (6, 1, 1, D); `time_mix_r_k` is a vector; and layer 0
has values of its own in tensors that nothing reads.

Source:  llama.cpp's `conversion/rwkv.py`
"""

from __future__ import annotations

from functools import partial

import numpy as np

from tallow.errors import CheckpointError
from tallow.io.gguf import GGUF
from tallow.models.decoders.rwkv7_formats import MIXES
from tallow.models.gguf.derived import DerivedFile, Values, stored
from tallow.models.gguf.names import LAYER

SHARES, FACTORS = ".time_mix_lerp_fused.weight", ".time_mix_r_k.weight"
UNREAD = tuple(f"{LAYER}.0.time_mix_v{part}.weight" for part in range(3))


class MixesFile(DerivedFile):
    """A file with a tensor for each share, with a row for each head of the factors, in float32.

    Args:
        file: of an RWKV-7.
        head: the width of a head.

    Raises:  CheckpointError for a tensor whose shape does not fit
    """

    def __init__(self, file: GGUF, head: int) -> None:
        super().__init__(file)
        for name in UNREAD:
            self._infos.pop(name, None)
        for name in [name for name in self if name.endswith((SHARES, FACTORS))]:
            shape = self._infos.pop(name).shape
            width = shape[-1] if shape else 0
            if name.endswith(SHARES):
                fits = width > 0 and shape[0] == len(MIXES) and int(np.prod(shape)) == len(MIXES) * width
                for i, mix in enumerate(MIXES):
                    self.add(name.replace("_fused", f"_{mix}"), (1, 1, width), partial(_share, shares=name, place=i))
            else:
                fits = len(shape) == 1 and head > 0 and width % head == 0
                self.add(name, (width // max(head, 1), head), partial(stored, name=name))
            if not fits:
                raise CheckpointError(f"{self.name}: tensor {name!r:.200} has the shape {tuple(shape)}")


def _share(file: GGUF, shares: str, place: int) -> Values:
    values: Values = stored(file, shares)[place]
    return values
