"""torch.jit.annotations: types for annotations."""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Tuple, Union  # noqa: F401, UP035 - names of the module

from tallow.core.tensor import Tensor
from tallow.devices import device


class _Lists:
    """`BroadcastingList2[int]`: a list of a length, for which a number may stand."""

    def __getitem__(self, kind: Any) -> Any:
        return list[kind]


BroadcastingList1 = BroadcastingList2 = BroadcastingList3 = BroadcastingList4 = BroadcastingList5 = _Lists()
BroadcastingList6 = BroadcastingList1
Future = Any
TensorType, Device = Tensor, device
