"""A demo that needs no model: the tests of web/ talk to it."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from tallow.errors import CheckpointError

REFUSED = b"refuse me"


class Demo:
    def __init__(self) -> None:
        self.closed = 0

    def check(self, name: str, head: bytes, size: int | None) -> int | None:
        if head.startswith(REFUSED):
            raise CheckpointError(f"{name} of size {size} is refused", mend="send another")
        return None

    def load(self, files: dict[str, npt.NDArray[np.uint8]]) -> dict[str, Any]:
        return {name: [array.size, hashlib.sha256(array).hexdigest()] for name, array in files.items()}

    def generate(
        self, *, count: int, pause_s: float = 0.0, fail_at: int = -1
    ) -> Iterator[tuple[str, dict[str, float]]]:
        try:
            for i in range(count):
                if i == fail_at:
                    raise CheckpointError("failed on purpose", mend="ask for less")
                time.sleep(pause_s)
                yield f"{i} ", {"made": i + 1, "closed": self.closed}
        finally:
            self.closed += 1
