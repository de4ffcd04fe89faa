"""Files as they should not be: for tests that nothing but a clear error comes of them."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager

from hypothesis import strategies as st


def damaged(valid: bytes) -> st.SearchStrategy[bytes]:
    """`valid`, cut short, or with some bytes replaced, inserted or taken out."""

    @st.composite
    def change(draw: st.DrawFn) -> bytes:
        raw = bytearray(valid)
        for _ in range(draw(st.integers(1, 4))):
            at = draw(st.integers(0, len(raw)))
            cut = draw(st.integers(0, 4))
            raw[at : at + cut] = draw(st.binary(max_size=4) | st.sampled_from([b"\xff" * 4, b"\xff" * 8, b"\0" * 8]))
        return bytes(raw)

    return change() | st.integers(0, len(valid)).map(lambda end: valid[:end])


@contextmanager
def at_most(peak_bytes: int) -> Iterator[None]:
    """Fails if more memory than this is allocated at one time."""
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] <= peak_bytes
    finally:
        tracemalloc.stop()
