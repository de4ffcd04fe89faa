"""Sounds of many hours in few bytes."""

from __future__ import annotations

import struct
from collections.abc import Collection
from functools import cache

FRAME = 65535  # samples in each frame, the most that FLAC allows


def flac_of_silence(
    frames: int, rate_hz: int = 16000, *, says: int | None = None, foreign: Collection[int] = ()
) -> bytes:
    """Return a FLAC file of so many frames of silence, in about 14 bytes each.

    Args:
        says: the number of samples in the header; by default the true one, 0 for unknown.
        foreign: the frames that say 44.1 kHz, whatever the file's header says.

    Source:  RFC 9639, sections 8.2 (the header) and 9 (frames)
    """
    total = frames * FRAME if says is None else says
    sizes = FRAME.to_bytes(2, "big") * 2 + bytes(6)  # of blocks, and the unknown sizes of frames
    counts = (rate_hz << 44 | 15 << 36 | total).to_bytes(8, "big")  # one channel, 16 bits
    head = b"fLaC\x80" + (34).to_bytes(3, "big") + sizes + counts + bytes(16)
    return head + b"".join(_frame(number, 9 if number in foreign else 0) for number in range(frames))


def opus_of_silence(packets: int, *, says: int | None = None, serial: int = 1) -> bytes:
    """Return an Ogg file of so many packets of Opus, each of 120 ms in two bytes.

    Args:
        says: the position at the end, in 1/48000 s; by default the true one.
        serial: the number of the stream.

    Source:  RFC 3533, section 6 (pages); RFC 7845, section 5, and RFC 6716, section 3.2.5 (Opus)
    """
    head = b"OpusHead" + bytes([1, 1]) + struct.pack("<HIhB", 0, 48000, 0, 0)
    tags = b"OpusTags" + struct.pack("<II", 0, 0)
    pages = [_page(serial, 0, 2, 0, [head]), _page(serial, 1, 0, 0, [tags])]
    packet = bytes([3 << 3 | 3, 2])  # two frames of 60 ms without content, of one channel
    for start in range(0, packets, 255):
        count = min(255, packets - start)
        end = (start + count) * 5760
        position = end if says is None else says * (start + count) // packets
        pages.append(_page(serial, len(pages), 0, position, [packet] * count))
    return b"".join(pages)


def _page(serial: int, number: int, flags: int, position: int, packets: list[bytes]) -> bytes:
    lacing = bytes(map(len, packets))  # of packets below 255 bytes
    start = b"OggS" + struct.pack("<BBqII", 0, flags, position, serial, number)
    end = bytes([len(lacing)]) + lacing + b"".join(packets)
    return start + _crc(start + bytes(4) + end, 0x04C11DB7, 32).to_bytes(4, "little") + end


def _frame(number: int, rate: int) -> bytes:
    # The size of the block follows, the bits are those of the file's header; one channel.
    start = b"\xff\xf8" + bytes([0x70 | rate, 0]) + chr(number).encode("utf-8", "surrogatepass")
    start += (FRAME - 1).to_bytes(2, "big")
    body = start + bytes([_crc(start, 0x07, 8)]) + b"\x00\x00\x00"  # a subframe that is constant, and its value
    return body + _crc(body, 0x8005, 16).to_bytes(2, "big")


def _crc(data: bytes, polynomial: int, bits: int) -> int:
    value, table = 0, _remainders(polynomial, bits)
    for byte in data:
        value = (value << 8) % (1 << bits) ^ table[value >> (bits - 8) ^ byte]
    return value


@cache
def _remainders(polynomial: int, bits: int) -> list[int]:
    """Return the remainder of each byte."""
    table = []
    for byte in range(256):
        value = byte << (bits - 8)
        for _ in range(8):
            value = value << 1 ^ ((polynomial | 1 << bits) if value >> (bits - 1) else 0)
        table.append(value)
    return table
