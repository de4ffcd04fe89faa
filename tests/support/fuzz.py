"""Fuzz file readers: for a damaged file, a reader must return a value or raise one of its own errors.

A `Reader` is a small valid file and a function that reads it. `check` reads copies of the file with a few changes:
flipped bits, inserted, deleted or moved bytes, wrong lengths; and, for JSON, archives and files that contain either,
replaced values. Case `n` of a reader is the same on every machine and in every run, so the number alone reproduces a
failure.

A reader that rejected every file would pass these cases. So `check` also reads the valid file in equivalent forms: JSON
with other whitespace and key order, an archive with another compression. The reader must accept these and return the
same value.
"""

from __future__ import annotations

import io
import json
import sys
import time
import tracemalloc
import zipfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any, TypeAlias

import numpy as np

import tallow as tl
from tallow.data import Dataset
from tallow.errors import TallowError

# Damaged files per reader, unless the run sets a time. Pyodide, five times as slow, repeats some of those.
CASES = 2 if sys.platform == "emscripten" else 5
FORM_EVERY = 3  # every third damaged file is followed by one equivalent form
FREE_BYTES = 2**22  # memory allowance for reading, whatever the size of the file
EXPANSION = 100  # additional bytes per byte of the file
SECONDS = 20.0  # time limit per case; checked in long runs only, since a slow machine is not a failure
OTHER_NUMBERS: Sequence[Callable[[Any], Any]] = (lambda n: -n, lambda n: n + 1, lambda n: n - 1, float, str)

Change: TypeAlias = Callable[[Random, bytes], bytes]

EDGES = (
    0,
    1,
    2,
    7,
    2**7,
    2**8 - 1,
    2**15,
    2**16 - 1,
    2**20,
    2**30,
    2**31 - 1,
    2**31,
    2**32 - 1,
    2**40,
    2**62,
    2**63,
    2**64 - 1,
)
VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 2, 3, 1.5, -0.0, 1e-300, 1e308, -1e308, 10**7, 2**31, 2**63, 2**64, 10**30),
    *("", "x", "1", "é", "\ud800", "\0", "../x", "a" * 300, "%s{0}{{x}}", "model", "cpu", "nan"),
    *([], {}, [[1]], [[]], [{}], {"": {}}, [{"name": {}}], {"$": "float", "value": "nan"}, [1, "2", None], [0] * 50),
)


# ------------------------------------------------------------------------------------------------------------- changes


def change_bytes(rng: Random, raw: bytes) -> bytes:
    """Make one random change to the bytes."""
    data, at = bytearray(raw), rng.randint(0, len(raw))
    match rng.randrange(8):
        case 0 if data:
            data[at % len(data)] ^= 1 << rng.randrange(8)
        case 1:
            data[at : at + rng.randint(0, 4)] = rng.randbytes(rng.randint(0, 4))
        case 2:
            del data[at:]
        case 3:  # copy a part of the file to another position
            begin = rng.randint(0, len(raw))
            data[at : at + rng.choice((0, 8, 64))] = raw[begin : begin + rng.choice((1, 8, 64, len(raw)))]
        case 4:
            data[at : at + rng.choice((1, 8, 64))] = b""
        case _:  # overwrite a number, at a likely position
            width = rng.choice((1, 2, 4, 8))
            step = rng.choice((1, width))
            number = rng.choice(EDGES) % 256**width
            at = at // step * step
            data[at : at + width] = number.to_bytes(width, rng.choice(("little", "little", "big")))
    return bytes(data)


def change_json(rng: Random, raw: bytes) -> bytes:
    """Replace, move or delete values of a JSON text; in one case of ten change its bytes instead."""
    try:
        tree = json.loads(raw)
    except ValueError:
        return change_bytes(rng, raw)
    if rng.random() < 0.1:
        return change_bytes(rng, raw)
    places = list(_places(tree))
    holder, key = rng.choice(places) if places else (None, None)
    if holder is None:
        tree = rng.choice(VALUES)
    elif (kind := rng.random()) < 0.15:
        del holder[key]
    elif kind < 0.3:
        source, source_key = rng.choice(places)
        with suppress(ValueError, RecursionError):
            holder[key] = json.loads(json.dumps(source[source_key]))
    elif kind < 0.4:
        holder[key] = [holder[key]] * rng.choice((1, 2, 50))
    elif kind < 0.5 and isinstance(holder, dict):
        holder[rng.choice((key + "x", "", "$", "name", "type", "0"))] = holder.pop(key)
    elif kind < 0.6 and type(holder[key]) in (int, float):
        with suppress(OverflowError, ValueError):  # as a float, or as text, of an integer of thousands of digits
            holder[key] = rng.choice(OTHER_NUMBERS)(holder[key])
    else:
        holder[key] = rng.choice(VALUES)
    return json.dumps(tree).encode()


def _places(tree: Any) -> Any:
    items = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, value in items:
        yield tree, key
        yield from _places(value)


def change_safetensors(rng: Random, raw: bytes) -> bytes:
    """Change values of a safetensors header, including JSON in its metadata, and correct the header's length."""
    length = int.from_bytes(raw[:8], "little")
    try:
        header = json.loads(raw[8 : 8 + length])
        metadata = header.get("__metadata__", {})
        inner = [name for name, text in metadata.items() if text[:1] == "{"]
    except (ValueError, AttributeError, TypeError):
        return change_bytes(rng, raw)
    if inner and rng.random() < 0.7:
        name = rng.choice(inner)
        metadata[name] = change_json(rng, metadata[name].encode()).decode("utf-8", "replace")
        text = json.dumps(header).encode()
    elif rng.random() < 0.6:
        text = change_json(rng, raw[8 : 8 + length])
    else:
        return change_bytes(rng, raw)
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text + raw[8 + length :]


BY_EXTENSION = {"json": change_json, "safetensors": change_safetensors}


def change_zip(rng: Random, raw: bytes) -> bytes:
    """Change one entry of an archive and write a valid archive again; sometimes change bytes of the archive instead."""
    if rng.random() < 0.4:
        return change_bytes(rng, raw)
    try:
        with zipfile.ZipFile(io.BytesIO(raw)) as archive:
            entries = [(info, archive.read(info)) for info in archive.infolist()]
    except Exception:  # an earlier change damaged the archive; zipfile raises errors of many types
        return change_bytes(rng, raw)
    if not entries:
        return change_bytes(rng, raw)
    index_to_change = rng.randrange(len(entries))
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for i, (info, content) in enumerate(entries):
            if i == index_to_change:
                kind = info.filename.rpartition(".")[2]
                content = {"json": change_json, "safetensors": change_safetensors}.get(kind, change_bytes)(rng, content)
            archive.writestr(info.filename, content, info.compress_type)
    return out.getvalue()


# --------------------------------------------------------------------------------------------------- equivalent forms


def reformat_json(rng: Random, raw: bytes) -> bytes:
    """Write the same values with other whitespace, escapes and key order."""
    text = json.dumps(
        _shuffle_keys(rng, json.loads(raw)), indent=rng.choice((None, 1, "\t")), ensure_ascii=rng.random() < 0.5
    )
    return "".join((rng.choice(("", "\n", " ")), text, rng.choice(("", "\n", "\r\n  ")))).encode()


def _shuffle_keys(rng: Random, tree: Any) -> Any:
    if isinstance(tree, dict):
        keys = list(tree)
        rng.shuffle(keys)
        return {key: _shuffle_keys(rng, tree[key]) for key in keys}
    return [_shuffle_keys(rng, item) for item in tree] if isinstance(tree, list) else tree


def reformat_safetensors(rng: Random, raw: bytes) -> bytes:
    """Write the same tensors with a reordered header and more padding after it."""
    length = int.from_bytes(raw[:8], "little")
    header = _shuffle_keys(rng, json.loads(raw[8 : 8 + length]))
    metadata = header.get("__metadata__", {})
    for name, text in metadata.items():
        if text[:1] == "{":
            metadata[name] = reformat_json(rng, text.encode()).decode()
    text = json.dumps(header, indent=rng.choice((None, 2))).encode()
    text += b" " * (-len(text) % 8 + rng.choice((0, 8, 64)))
    return len(text).to_bytes(8, "little") + text + raw[8 + length :]


def reformat_zip(rng: Random, raw: bytes) -> bytes:
    """Write the same entries with other dates and compression, each in an equivalent form of its own."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(raw)) as archive, zipfile.ZipFile(out, "w") as out_archive:
        for info in archive.infolist():
            content = archive.read(info)
            forms = {"json": reformat_json, "safetensors": reformat_safetensors}
            if form := forms.get(info.filename.rpartition(".")[2]):
                content = form(rng, content)
            dated = zipfile.ZipInfo(info.filename, (rng.randint(1990, 2030), 1, 1, 0, 0, 0))
            out_archive.writestr(dated, content, rng.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)))
    return out.getvalue()


FORMS: dict[Change, Change] = {
    change_json: reformat_json,
    change_safetensors: reformat_safetensors,
    change_zip: reformat_zip,
}


def to_plain(value: Any) -> Any:
    """Return a comparable form of a value: tensors and datasets become lists of their elements."""
    if isinstance(value, tl.Tensor):
        return value.dtype.name, tuple(value.shape), value.detach().float().tolist()
    if isinstance(value, np.ndarray):
        return str(value.dtype), value.shape, value.tolist()
    if isinstance(value, dict):
        return {str(key): to_plain(value[key]) for key in sorted(value, key=str)}
    if isinstance(value, list | tuple | Dataset):
        return [to_plain(value[i]) for i in range(len(value))]  # type: ignore[arg-type]
    return value if isinstance(value, str | bytes | int | float | None) else type(value).__name__


# -------------------------------------------------------------------------------------------------------------- readers


@dataclass(frozen=True)
class Reader:
    """A reader of one file format.

    Attributes:
        valid: a small valid file, or a function that writes one.
        read: reads the file's bytes, uses the result and returns it. It receives an empty folder, for formats that need
            several files.
        change: how to damage files.
        form: converts the valid file to an equivalent form; by default the entry of FORMS for `change`.
        errors: exceptions the reader may raise.
        extra_bytes: memory that reading needs for any file, for a library or a cache.
        needs: optional package that reading requires.
    """

    valid: bytes | Callable[[], bytes]
    read: Callable[[bytes, Path], object]
    change: Change = change_bytes
    form: Change | None = None
    errors: tuple[type[Exception], ...] = (TallowError,)
    extra_bytes: int = 0
    needs: str | None = None


def make_case(name: str, change: Change, valid: bytes, number: int) -> bytes:
    """Return the valid file after one or a few changes."""
    rng = Random(f"{name} {number}")
    raw = valid
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        raw = change(rng, raw)
    return raw


def check(name: str, reader: Reader, folder: Path, seconds: float | None) -> None:
    """Read the cases of a reader: the first CASES, or as many as fit in `seconds`.

    Fail if the reader rejects an equivalent form of the valid file or returns another value for it, raises an error
    that is not one of its own, exceeds the memory limit or, in a long run, the time limit.
    """
    valid = reader.valid if isinstance(reader.valid, bytes) else reader.valid()
    expected = repr(to_plain(reader.read(valid, folder)))
    form = reader.form or FORMS.get(reader.change)
    start, number = time.monotonic(), 0
    while number < CASES if seconds is None else time.monotonic() - start < seconds:
        if form is not None and number % FORM_EVERY == 0:
            raw = form(Random(f"{name} {number} in another form"), valid)
            result = repr(to_plain(reader.read(raw, folder)))
            assert result == expected, f"{name}, form {number}: {result:.300} instead of {expected:.300}; {raw[:200]!r}"
        raw = make_case(name, reader.change, valid, number)
        case_start = time.process_time()  # not the time of day, of which others on a busy machine have a part
        peak = _read(reader, raw, folder, f"{name}, case {number}")
        limit = FREE_BYTES + reader.extra_bytes + EXPANSION * len(raw)
        assert peak <= limit, f"{name}, case {number}: {peak} bytes for a file of {len(raw)}: {raw[:200]!r}"
        seconds_taken = time.process_time() - case_start
        assert seconds is None or seconds_taken <= SECONDS, (
            f"{name}, case {number}: {seconds_taken:.0f} s for {raw[:200]!r}"
        )
        number += 1


def _read(reader: Reader, raw: bytes, folder: Path, what: str) -> int:
    """Read a file and return the peak of allocated memory in bytes."""
    tracemalloc.start()
    try:
        reader.read(raw, folder)
    except reader.errors as error:
        str(error).encode("utf-8", "backslashreplace")
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt | SystemExit | GeneratorExit):
            raise
        raise AssertionError(f"{what}: {type(error).__name__}: {error}; the file begins with {raw[:200]!r}") from error
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    return peak
