"""Files as nobody should have written them: what any reader does with them is answer, or raise one of its own errors.

A `Reader` is a small valid file and a function that reads it. `check` reads copies of it that are changed in some
places: bits turned over, bytes put in, taken out or moved, lengths set to what they are not; and, where a file is JSON
or an archive or holds either, values in it replaced by others. Case `n` of a reader is the same on every machine and in
every run, so a number is all that is needed to see a failure again.

A reader that refused every file would pass that. So it also reads the valid file in other forms, which mean the same:
JSON with other spaces and keys in another order, an archive with another compression. These must be read, and give what
the valid file gives.
"""

from __future__ import annotations

import io
import json
import time
import tracemalloc
import zipfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any, TypeAlias

import numpy as np

import tallow as tl
from tallow.data import Dataset
from tallow.errors import TallowError

CASES = 5  # of each reader, in a run that is not asked for more
FORM_EVERY = 3  # the share of other forms: one follows every third damaged file
FREE_BYTES = 2**22  # that reading may take, whatever the size of the file
EXPANSION = 100  # and the bytes for each of the file's
SECONDS = 20.0  # that a case may take; told apart only in a long run, where a slow machine is no failure

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


def bytes_changed(rng: Random, raw: bytes) -> bytes:
    """One change anywhere."""
    data, at = bytearray(raw), rng.randint(0, len(raw))
    match rng.randrange(8):
        case 0 if data:
            data[at % len(data)] ^= 1 << rng.randrange(8)
        case 1:
            data[at : at + rng.randint(0, 4)] = rng.randbytes(rng.randint(0, 4))
        case 2:
            del data[at:]
        case 3:  # a part of the file elsewhere in it
            begin = rng.randint(0, len(raw))
            data[at : at + rng.choice((0, 8, 64))] = raw[begin : begin + rng.choice((1, 8, 64, len(raw)))]
        case 4:
            data[at : at + rng.choice((1, 8, 64))] = b""
        case _:  # a number, where one may be
            width = rng.choice((1, 2, 4, 8))
            step = rng.choice((1, width))
            number = rng.choice(EDGES) % 256**width
            at = at // step * step
            data[at : at + width] = number.to_bytes(width, rng.choice(("little", "little", "big")))
    return bytes(data)


def json_changed(rng: Random, raw: bytes) -> bytes:
    """Values of a JSON text replaced, moved or taken out; now and then a text that is changed as any bytes are."""
    try:
        tree = json.loads(raw)
    except ValueError:
        return bytes_changed(rng, raw)
    if rng.random() < 0.1:
        return bytes_changed(rng, raw)
    places = list(_places(tree))
    holder, key = rng.choice(places) if places else (None, None)
    if holder is None:
        tree = rng.choice(VALUES)
    elif (kind := rng.random()) < 0.15:
        del holder[key]
    elif kind < 0.3:
        other, place = rng.choice(places)
        with suppress(ValueError, RecursionError):
            holder[key] = json.loads(json.dumps(other[place]))
    elif kind < 0.4:
        holder[key] = [holder[key]] * rng.choice((1, 2, 50))
    elif kind < 0.5 and isinstance(holder, dict):
        holder[rng.choice((key + "x", "", "$", "name", "type", "0"))] = holder.pop(key)
    elif kind < 0.6 and type(holder[key]) in (int, float):
        holder[key] = rng.choice((-holder[key], holder[key] + 1, holder[key] - 1, float(holder[key]), str(holder[key])))
    else:
        holder[key] = rng.choice(VALUES)
    return json.dumps(tree).encode()


def _places(tree: Any) -> Any:
    items = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, value in items:
        yield tree, key
        yield from _places(value)


def safetensors_changed(rng: Random, raw: bytes) -> bytes:
    """Values of the header, whose length is then made to fit; JSON in its metadata too."""
    length = int.from_bytes(raw[:8], "little")
    try:
        header = json.loads(raw[8 : 8 + length])
        metadata = header.get("__metadata__", {})
        inner = [name for name, text in metadata.items() if text[:1] == "{"]
    except (ValueError, AttributeError, TypeError):
        return bytes_changed(rng, raw)
    if inner and rng.random() < 0.7:
        name = rng.choice(inner)
        metadata[name] = json_changed(rng, metadata[name].encode()).decode("utf-8", "replace")
        text = json.dumps(header).encode()
    elif rng.random() < 0.6:
        text = json_changed(rng, raw[8 : 8 + length])
    else:
        return bytes_changed(rng, raw)
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text + raw[8 + length :]


BY_EXTENSION = {"json": json_changed, "safetensors": safetensors_changed}


def zip_changed(rng: Random, raw: bytes) -> bytes:
    """An entry of an archive, which is whole again then; or any bytes."""
    if rng.random() < 0.4:
        return bytes_changed(rng, raw)
    try:
        with zipfile.ZipFile(io.BytesIO(raw)) as archive:
            entries = [(info, archive.read(info)) for info in archive.infolist()]
    except Exception:  # damaged before: whatever zipfile says of it
        return bytes_changed(rng, raw)
    if not entries:
        return bytes_changed(rng, raw)
    chosen = rng.randrange(len(entries))
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for i, (info, content) in enumerate(entries):
            if i == chosen:
                kind = info.filename.rpartition(".")[2]
                content = {"json": json_changed, "safetensors": safetensors_changed}.get(kind, bytes_changed)(
                    rng, content
                )
            archive.writestr(info.filename, content, info.compress_type)
    return out.getvalue()


# --------------------------------------------------------------------------------------------------------- other forms


def json_in_another_form(rng: Random, raw: bytes) -> bytes:
    """The same values with other spaces, other escapes, and keys in another order."""
    text = json.dumps(
        _shuffled(rng, json.loads(raw)), indent=rng.choice((None, 1, "\t")), ensure_ascii=rng.random() < 0.5
    )
    return "".join((rng.choice(("", "\n", " ")), text, rng.choice(("", "\n", "\r\n  ")))).encode()


def _shuffled(rng: Random, tree: Any) -> Any:
    if isinstance(tree, dict):
        keys = list(tree)
        rng.shuffle(keys)
        return {key: _shuffled(rng, tree[key]) for key in keys}
    return [_shuffled(rng, item) for item in tree] if isinstance(tree, list) else tree


def safetensors_in_another_form(rng: Random, raw: bytes) -> bytes:
    """The same tensors behind a header whose names come in another order, with more spaces behind them."""
    length = int.from_bytes(raw[:8], "little")
    header = _shuffled(rng, json.loads(raw[8 : 8 + length]))
    metadata = header.get("__metadata__", {})
    for name, text in metadata.items():
        if text[:1] == "{":
            metadata[name] = json_in_another_form(rng, text.encode()).decode()
    text = json.dumps(header, indent=rng.choice((None, 2))).encode()
    text += b" " * (-len(text) % 8 + rng.choice((0, 8, 64)))
    return len(text).to_bytes(8, "little") + text + raw[8 + length :]


def zip_in_another_form(rng: Random, raw: bytes) -> bytes:
    """The same entries of another date, compressed or not, each in another form of its own."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(raw)) as archive, zipfile.ZipFile(out, "w") as other:
        for info in archive.infolist():
            content = archive.read(info)
            another = {"json": json_in_another_form, "safetensors": safetensors_in_another_form}
            if form := another.get(info.filename.rpartition(".")[2]):
                content = form(rng, content)
            dated = zipfile.ZipInfo(info.filename, (rng.randint(1990, 2030), 1, 1, 0, 0, 0))
            other.writestr(dated, content, rng.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)))
    return out.getvalue()


FORMS: dict[Change, Change] = {
    json_changed: json_in_another_form,
    safetensors_changed: safetensors_in_another_form,
    zip_changed: zip_in_another_form,
}


def plain(value: Any) -> Any:
    """What was read, as something that can be compared: tensors and datasets by their elements."""
    if isinstance(value, tl.Tensor):
        return value.dtype.name, tuple(value.shape), value.detach().float().tolist()
    if isinstance(value, np.ndarray):
        return str(value.dtype), value.shape, value.tolist()
    if isinstance(value, dict):
        return {str(key): plain(value[key]) for key in sorted(value, key=str)}
    if isinstance(value, list | tuple | Dataset):
        return [plain(value[i]) for i in range(len(value))]  # type: ignore[arg-type]
    return value if isinstance(value, str | bytes | int | float | None) else type(value).__name__


# -------------------------------------------------------------------------------------------------------------- readers


@dataclass(frozen=True)
class Reader:
    """What reads a file.

    Attributes:
        valid: a small file, or what makes one.
        read: reads one, touches what came of it, and returns that. It is given a folder of its own, for files that lie
            beside others.
        change: how files are changed.
        form: puts the valid file into another form that means the same; by default as FORMS has it for `change`.
        errors: what it may raise.
        extra_bytes: that reading takes, whatever the file: a library, a cache.
        needs: the package that reading takes, where it is an optional one.
    """

    valid: bytes | Callable[[], bytes]
    read: Callable[[bytes, Path], object]
    change: Change = bytes_changed
    form: Change | None = None
    errors: tuple[type[Exception], ...] = (TallowError,)
    extra_bytes: int = 0
    needs: str | None = None


def case_of(name: str, change: Change, valid: bytes, number: int) -> bytes:
    """A file that was changed in one place or some."""
    rng = Random(f"{name} {number}")
    raw = valid
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        raw = change(rng, raw)
    return raw


def check(name: str, reader: Reader, place: Path, seconds: float | None) -> None:
    """Read the cases of a reader: the first CASES, or as many as there is time for.

    Fails for another form of the valid file that is refused or read otherwise, for an error that is none of its own,
    for memory beyond what its file may take, and, in a long run, for time.
    """
    valid = reader.valid if isinstance(reader.valid, bytes) else reader.valid()
    expected = repr(plain(reader.read(valid, place)))
    form = reader.form or FORMS.get(reader.change)
    started, number = time.monotonic(), 0
    while number < CASES if seconds is None else time.monotonic() - started < seconds:
        if form is not None and number % FORM_EVERY == 0:
            raw = form(Random(f"{name} {number} in another form"), valid)
            found = repr(plain(reader.read(raw, place)))
            assert found == expected, f"{name}, form {number}: {found:.300} instead of {expected:.300}; {raw[:200]!r}"
        raw = case_of(name, reader.change, valid, number)
        begun = time.monotonic()
        peak = _read(reader, raw, place, f"{name}, case {number}")
        limit = FREE_BYTES + reader.extra_bytes + EXPANSION * len(raw)
        assert peak <= limit, f"{name}, case {number}: {peak} bytes for a file of {len(raw)}: {raw[:200]!r}"
        taken = time.monotonic() - begun
        assert seconds is None or taken <= SECONDS, f"{name}, case {number}: {taken:.0f} s for {raw[:200]!r}"
        number += 1


def _read(reader: Reader, raw: bytes, place: Path, what: str) -> int:
    """The most memory that was taken at one time."""
    tracemalloc.start()
    try:
        reader.read(raw, place)
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
