"""Talk with `tallow chat` as in a terminal."""

from __future__ import annotations

import os
import select
import subprocess
import sys
import time
from typing import Any


class Terminal:
    """`tallow chat` attached to a pseudo-terminal."""

    def __init__(self, *options: Any) -> None:
        import pty

        self.end, inner = pty.openpty()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tallow", "chat", *map(str, options)],
            stdin=inner,
            stdout=inner,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            env=os.environ | {"TERM": "dumb"},
        )
        os.close(inner)

    def type(self, text: str) -> None:
        os.write(self.end, text.encode())

    def until(self, expected: str) -> str:
        """Read until `expected` appears, and return the output so far."""
        seen, end = b"", time.monotonic() + 120
        while expected.encode() not in seen:
            assert time.monotonic() < end, f"still waiting for {expected!r} after {seen[-1000:]!r}"
            seen += self.read(f"{expected!r} after {seen!r}")
        return seen.decode(errors="replace")

    def read(self, expected: str = "anything") -> bytes:
        ready, _, _ = select.select([self.end], [], [], 60)
        assert ready, f"still waiting for {expected}"
        return os.read(self.end, 4096)

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self.end)
