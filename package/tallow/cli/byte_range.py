"""The header `Range` of HTTP: which bytes of a file a client asks for.

Source:  RFC 9110, section 14
"""

from __future__ import annotations

import re

# One range of bytes. Numbers of more digits than a file system counts to are no request that anybody makes.
SINGLE = re.compile(r"bytes=[ \t]*(?:([0-9]{1,18})-([0-9]{1,18})?|-([0-9]{1,18}))[ \t]*", re.IGNORECASE)


class Unsatisfiable(Exception):
    """The range holds no byte of the file; the answer is 416."""


def requested_range(header: str | None, size: int) -> range | None:
    """The positions that `header` asks for, of a file of `size` bytes; None means the whole file.

    A server may ignore the header. It does so with another unit, with what is not well formed, and with several ranges,
    for which an answer would need a body of several parts.

    Raises:  Unsatisfiable
    """
    found = SINGLE.fullmatch(header or "")
    if found is None:
        return None
    first, last, suffix = (None if digits is None else int(digits) for digits in found.groups())
    if suffix is not None:
        positions = range(max(size - suffix, 0), size)
    else:
        assert first is not None  # the pattern has one or the other
        if last is not None and last < first:
            return None  # not well formed
        positions = range(first, size if last is None else min(last + 1, size))
    if not positions:
        raise Unsatisfiable
    return positions
