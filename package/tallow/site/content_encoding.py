"""Compress the files of a server with gzip.

Source:  RFC 9110, sections 8.4 and 12.5.3
"""

from __future__ import annotations

import gzip
import ipaddress
import re
import threading
from collections import defaultdict
from pathlib import Path

from tallow.io.regular import read_regular

# Archives, models and pictures are compressed already.
SUFFIXES = frozenset({".css", ".html", ".js", ".json", ".mjs", ".py", ".svg", ".wasm"})
LEVEL = 6  # level 9 takes three times as long and saves 1 %
MIN_BYTES = 1 << 10  # smaller files fit into one packet
MAX_BYTES = 1 << 25  # the results stay in memory
CODING = re.compile(r"[ \t]*(gzip|x-gzip|\*)[ \t]*(?:;[ \t]*q=([01](?:\.[0-9]{0,3})?)[ \t]*)?", re.IGNORECASE)


def accepts_gzip(header: str | None) -> bool:
    """Return whether the header `Accept-Encoding` allows gzip. What is not valid allows nothing."""
    found = {match[1].lower(): match[2] for part in (header or "").split(",") if (match := CODING.fullmatch(part))}
    quality = next((found[name] for name in ("gzip", "x-gzip", "*") if name in found), "0")
    return quality is None or float(quality) > 0


def is_far(address: str) -> bool:
    """Return whether a client is on another computer: on this one, to unpack takes longer than to send all bytes."""
    parsed = ipaddress.ip_address(address.partition("%")[0])
    mapped = parsed.ipv4_mapped if isinstance(parsed, ipaddress.IPv6Address) else None
    return not (mapped or parsed).is_loopback


class GzipFiles:
    """Compressed files. Each is compressed when it is first asked for, and kept until it changes."""

    def __init__(self) -> None:
        self._locks: dict[Path, threading.Lock] = defaultdict(threading.Lock)
        self._kept: dict[Path, tuple[str, bytes]] = {}

    def read(self, path: Path, size: int, version: str) -> bytes | None:
        """Return the compressed file, or None if that is not worth it.

        Args:
            size: of the file, in bytes.
            version: another one means that the file has changed.
        """
        if path.suffix not in SUFFIXES or not MIN_BYTES <= size <= MAX_BYTES:
            return None
        with self._locks[path]:  # two clients at once: the second waits
            kept = self._kept.get(path)
            if kept is None or kept[0] != version:
                kept = self._kept[path] = version, gzip.compress(read_regular(path), LEVEL, mtime=0)
        return kept[1] if len(kept[1]) < size else None
