"""Names of `torch.amp.grad_scaler` that tallow itself does not have."""

from __future__ import annotations

from enum import Enum


class OptState(Enum):
    """The state of an optimizer since the last `update` of its GradScaler."""

    READY, UNSCALED, STEPPED = range(3)
