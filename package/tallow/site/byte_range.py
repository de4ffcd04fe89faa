"""Parse the HTTP header `Range`.

Source:  RFC 9110, section 14
"""

from __future__ import annotations

import re

# A single byte range. 18 digits exceed the size of any file.
SINGLE = re.compile(r"bytes=[ \t]*(?:([0-9]{1,18})-([0-9]{1,18})?|-([0-9]{1,18}))[ \t]*", re.IGNORECASE)


class Unsatisfiable(Exception):
    """The range contains no byte of the file; respond with status 416."""


def requested_range(header: str | None, size: int) -> range | None:
    """Return the byte positions that `header` requests from a file of `size` bytes; None means the whole file.

    A server may ignore the header. This function ignores other units, malformed values, and several ranges, which would
    need a multipart response.

    Raises:  Unsatisfiable
    """
    found = SINGLE.fullmatch(header or "")
    if found is None:
        return None
    first, last, suffix = (None if digits is None else int(digits) for digits in found.groups())
    if suffix is not None:
        positions = range(max(size - suffix, 0), size)
    else:
        assert first is not None  # the pattern matches one or the other
        if last is not None and last < first:
            return None  # malformed
        positions = range(first, size if last is None else min(last + 1, size))
    if not positions:
        raise Unsatisfiable
    return positions
