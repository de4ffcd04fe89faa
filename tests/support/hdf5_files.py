"""HDF5 files in Keras' older format, and one that makes libhdf5 hang."""

from __future__ import annotations

import io

HEAP = b"GCOL"  # a collection of strings; its first object begins after 16 bytes, with its size at byte 8


def legacy(names: list[str]) -> bytes:
    """Return weights in Keras' older format, with these names of the layers."""
    import h5py  # optional: the tests that want a file skip without it

    file = io.BytesIO()
    with h5py.File(file, "w") as opened:
        opened.attrs["layer_names"] = names
    return file.getvalue()


def hanging() -> bytes:
    """Return a file with a string of no bytes: libhdf5 takes what follows for free space of no bytes, for ever."""
    raw = bytearray(legacy(["dense", "dense_1"]))
    size_at = raw.index(HEAP) + 16 + 8
    raw[size_at : size_at + 8] = bytes(8)
    return bytes(raw)
