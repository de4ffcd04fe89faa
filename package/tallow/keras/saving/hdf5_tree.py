"""Read the groups, attributes and arrays of an HDF5 file with h5py; also as a program that reads for another.

libhdf5 hangs or crashes on some damaged files, and nothing in Python ends it. So `hdf5_process` runs this file as a
program, which imports nothing of tallow, and limits its own time and memory. The program has no access to the file: it
asks for the bytes that it needs. Its arguments are the size of the file, and the seconds of a processor that each order
may take. Then they talk:

    from the program     "?" offset size      a request for bytes of the file, which come back
                         "=" size bytes       the answer to an order, or first of all the description, as JSON
                         "!" size text        an error
    to the program       number               an order: the number of an array of the description
"""

from __future__ import annotations

import io
import json
import math
import os
import struct
import sys
from typing import Any, BinaryIO

import numpy as np

BFLOAT16 = "bfloat16"
KINDS = "biuf"
MAX_EXPANSION = 100  # largest ratio of a compressed array's size to its stored size
FREE_BYTES = 2**20

ASK, ANSWER, ERROR = b"?", b"=", b"!"
NUMBER, PAIR = struct.Struct("<Q"), struct.Struct("<QQ")
PAGE = 1 << 16  # bytes that are requested at once; libhdf5 reads some hundred at a time
MOST_PAGES = 256

# What one order may take. Files of Keras take milliseconds, and a few MB for each hundred layers.
CPU_S_PER_BYTE = 1 / 20e6  # compressed arrays take a second for 100 MB
MEMORY_BYTES = 256 << 20


class Hdf5Tree:
    """An open file.

    Args:
        file: seekable and readable.
        size: of the file.

    Attributes:
        description: what `describe` returns.

    Raises:  the errors of h5py, which are of many kinds
    """

    def __init__(self, file: Any, size: int) -> None:
        import h5py  # optional: the extra "keras"

        self._h5py = h5py
        self._size = size
        self._arrays: list[Any] = []
        self._file = h5py.File(file, "r")
        self.description = self._describe()

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def read(self, number: int) -> np.ndarray[Any, Any]:
        """Return the values of an array as bytes (N,), little-endian; those of bools are 0 and 1."""
        values = np.asarray(self._arrays[number][()])
        if values.dtype.kind == "b":
            values = (values.view(np.uint8) != 0).astype(np.uint8)
        elif values.dtype.kind != "V":
            values = values.astype(values.dtype.newbyteorder("<"), copy=False)
        return np.frombuffer(np.ascontiguousarray(values).data.cast("B") if values.size else b"", np.uint8)

    def _describe(self) -> dict[str, Any]:
        """Return the groups by path, that of the file is "", and the arrays.

        groups[path]    "attributes": texts and lists of texts by name; "members": the kind of each by name
        arrays[path]    "number", "shape", "dtype", "bytes" as stored, "place" in the file if they lie there one after
                        the other as the dtype says, "problem" if it cannot be read, and why
        """
        groups: dict[str, Any] = {}
        arrays: dict[str, Any] = {}
        waiting, seen = [("", self._file)], {self._address(self._file)}
        while waiting:
            path, group = waiting.pop()
            members: dict[str, str] = {}
            groups[path] = {"attributes": _attributes(group.attrs), "members": members}
            for key in group:
                name = _text(key)
                item, members[name] = self._member(group, key, seen)
                where = f"{path}/{name}" if path else name
                if members[name] == "group":
                    waiting.append((where, item))
                elif members[name] == "array":
                    arrays[where] = {"number": len(self._arrays)} | self._described(item)
                    self._arrays.append(item)
        return {"groups": groups, "arrays": arrays}

    def _member(self, group: Any, key: Any, seen: set[int]) -> tuple[Any, str]:
        """Return a member and its kind. A group that was seen before counts as a link, or paths would never end."""
        if "/" in str(key) or group.get(key, getclass=True, getlink=True) is not self._h5py.HardLink:
            return None, "link"
        item = group[key]
        if isinstance(item, self._h5py.Dataset):
            return item, "array"
        if not isinstance(item, self._h5py.Group):
            return item, "other"
        address = self._address(item)
        kind = "link" if address in seen else "group"
        seen.add(address)
        return item, kind

    def _address(self, item: Any) -> int:
        return int(self._h5py.h5o.get_info(item.id).addr)

    def _described(self, dataset: Any) -> dict[str, Any]:
        try:
            dtype, shape = dataset.dtype, tuple(map(int, dataset.shape))
            stored = min(int(dataset.id.get_storage_size()), self._size)
            found = {"shape": shape, "dtype": dtype.str, "bytes": stored, "place": self._place(dataset, dtype)}
            if dataset.external or dataset.is_virtual:
                return found | {"problem": "is stored in another file, which is not supported"}
            is_bfloat16 = dataset.attrs.get("dtype") == BFLOAT16 and dtype.itemsize == 2
            if is_bfloat16 and dtype.kind == "V":
                found["dtype"] = BFLOAT16
            elif dtype.kind not in KINDS:
                return found | {"problem": f"has dtype {dtype!s:.200}, which is not numeric"}
            size = math.prod(shape) * dtype.itemsize
            if size > MAX_EXPANSION * stored + FREE_BYTES:
                return found | {"problem": f"has {stored} bytes that would expand to {size}"}
            return found
        except Exception as error:  # as many kinds as h5py raises
            return {"shape": (), "dtype": "", "bytes": 0, "place": None, "problem": f"is damaged: {error!s:.200}"}

    def _place(self, dataset: Any, dtype: Any) -> int | None:
        """Return where the values begin in the file, if they lie there one after the other, as the dtype says."""
        size = math.prod(dataset.shape) * dtype.itemsize
        is_plain = dtype.kind in "iuf" and dataset.chunks is None and dataset.id.get_storage_size() == size
        if (
            not is_plain
            or self._file.userblock_size
            or not self._h5py.h5t.py_create(dtype).equal(dataset.id.get_type())
        ):
            return None
        return dataset.id.get_offset()


def _attributes(attributes: Any) -> dict[str, str | list[str]]:
    found: dict[str, str | list[str]] = {}
    for name in attributes:
        try:
            value = attributes[name]
        except TypeError:  # of a kind that h5py cannot convert, such as times; Keras' are texts
            continue
        if isinstance(value, np.ndarray):
            found[name] = [_text(item) for item in value.ravel().tolist()]
        else:
            found[name] = _text(value)
    return found


def _text(value: Any) -> str:
    """Return bytes or another value as text. h5py has characters that cannot be written for bytes beyond UTF-8."""
    raw = value if isinstance(value, bytes) else str(value).encode("utf-8", "surrogateescape")
    return raw.decode(errors="replace")


# ------------------------------------------------------------------------------------------------------- the program


class _RemoteFile(io.RawIOBase):
    """The file, whose bytes come from the other process."""

    def __init__(self, ask: BinaryIO, answers: BinaryIO, size: int) -> None:
        self._ask, self._answers = ask, answers
        self._size, self._position = size, 0
        self._pages: dict[int, bytes] = {}

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._position = max(0, {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence] + offset)
        return self._position

    def readinto(self, buffer: Any) -> int:
        view = memoryview(buffer).cast("B")
        start, end = self._position, min(self._position + len(view), self._size)
        if end <= start:
            return 0
        if end - start > PAGE:
            view[: end - start] = self._fetch(start, end)
        else:
            first, last = start // PAGE, (end - 1) // PAGE
            joined = b"".join(self._page(number) for number in range(first, last + 1))
            view[: end - start] = joined[start - first * PAGE : end - first * PAGE]
        self._position = end
        return end - start

    def _page(self, number: int) -> bytes:
        if number not in self._pages:
            if len(self._pages) == MOST_PAGES:
                self._pages.clear()
            self._pages[number] = self._fetch(number * PAGE, min((number + 1) * PAGE, self._size))
        return self._pages[number]

    def _fetch(self, start: int, end: int) -> bytes:
        self._ask.write(ASK + PAIR.pack(start, end - start))
        self._ask.flush()
        return self._answers.read(end - start)


def _limit(cpu_s: int, expanded_bytes: int) -> None:
    """Limit the time and memory of this process from now on: the system kills it, or Python raises MemoryError."""
    try:
        import resource
    except ImportError:  # Windows; the other process ends this one after some time
        return
    used = resource.getrusage(resource.RUSAGE_SELF)
    seconds = used.ru_utime + used.ru_stime + cpu_s + expanded_bytes * CPU_S_PER_BYTE
    limits = {resource.RLIMIT_CORE: 0, resource.RLIMIT_CPU: math.ceil(seconds)}
    if sys.platform == "linux":
        with open("/proc/self/statm") as file:
            pages = int(file.read().split()[0])
        limits[resource.RLIMIT_AS] = pages * os.sysconf("SC_PAGE_SIZE") + MEMORY_BYTES + 2 * expanded_bytes
    for kind, most in limits.items():
        _, hard = resource.getrlimit(kind)  # which the user may have set lower
        resource.setrlimit(kind, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))


def _serve(size: int, cpu_s: int, orders: BinaryIO, answers: BinaryIO) -> None:
    import h5py  # noqa: F401 - optional; its libraries are not part of the memory that the file takes

    _limit(cpu_s, size)
    tree = Hdf5Tree(_RemoteFile(answers, orders, size), size)
    arrays = [*tree.description["arrays"].values()]
    text = json.dumps(tree.description).encode()
    answers.write(ANSWER + NUMBER.pack(len(text)) + text)
    answers.flush()
    while order := orders.read(NUMBER.size):
        (number,) = NUMBER.unpack(order)
        _limit(cpu_s, size + math.prod(arrays[number]["shape"]) * 16)  # no element is wider
        values = tree.read(number)
        answers.write(ANSWER + NUMBER.pack(len(values)))
        answers.write(values.data)
        answers.flush()


def _main() -> None:
    orders, answers = sys.stdin.buffer, sys.stdout.buffer
    try:
        _serve(int(sys.argv[1]), int(sys.argv[2]), orders, answers)
    except Exception as error:  # as many kinds as h5py raises
        text = f"{error!s:.500}".encode(errors="replace")
        answers.write(ERROR + NUMBER.pack(len(text)) + text)
        answers.flush()


if __name__ == "__main__":
    _main()
