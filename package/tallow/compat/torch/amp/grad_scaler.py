"""Names of `torch.amp.grad_scaler` that tallow itself does not have."""

from __future__ import annotations

from enum import Enum


class OptState(Enum):
    """What a GradScaler has done with an optimizer since its last `update`."""

    READY, UNSCALED, STEPPED = range(3)
