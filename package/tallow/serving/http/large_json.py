"""Answers in JSON that may be large: made and written in a thread, in pieces.

The encoder of the module json lets no other thread run until it has written a value: a hundred megabytes at once would
hold up all streams for seconds.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from tallow.serving.http.clients import in_turn

PIECE = 4096  # items of a list that are written at once
_written = partial(json.dumps, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


async def large_json(request: Request, value: Callable[[], Any]) -> Response:
    """Answer with what a function returns, as JSON; an iterator becomes a list."""
    return Response(await in_turn(request, lambda: b"".join(pieces(value()))), media_type="application/json")


def pieces(value: Any) -> Iterator[bytes]:
    """Yield the parts of a value in JSON, none of which takes long."""
    if isinstance(value, dict) and any(isinstance(each, dict | list) for each in value.values()):
        yield b"{"
        for i, (name, each) in enumerate(value.items()):
            yield f"{',' if i else ''}{_written(name)}:".encode()
            yield from pieces(each)
        yield b"}"
    elif isinstance(value, Iterator) or (isinstance(value, list) and value and isinstance(value[0], dict | list)):
        yield b"["
        for i, each in enumerate(value):
            yield b"," if i else b""
            yield from pieces(each)
        yield b"]"
    elif isinstance(value, list) and len(value) > PIECE:
        yield b"["
        for i in range(0, len(value), PIECE):
            yield f"{',' if i else ''}{_written(value[i : i + PIECE])[1:-1]}".encode()
        yield b"]"
    else:
        yield _written(value).encode()
