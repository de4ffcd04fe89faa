"""Names of `torch.autograd` that tallow itself does not have."""

from __future__ import annotations

from typing import Any


class set_multithreading_enabled:
    """A setting whether backward uses a thread for each device. It has no effect; also a block."""

    def __init__(self, mode: bool) -> None:
        self.mode = mode

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc_info: object) -> None:
        pass

    def clone(self) -> Any:
        """Return a block of the same setting."""
        return type(self)(self.mode)
