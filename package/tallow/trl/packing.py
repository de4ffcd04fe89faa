"""Several samples in one row, so that less of a batch is padding."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import defaultdict, deque
from collections.abc import Iterable, Mapping
from typing import Any

from tallow.errors import ArgumentError

STRATEGIES = ("bfd", "bfd_split", "wrapped")
Columns = Mapping[str, list[Any]]


def pack_dataset(dataset: Iterable[Columns], seq_length: int, strategy: str = "bfd") -> list[dict[str, list[Any]]]:
    """Return rows of at most `seq_length` elements that hold whole samples; `seq_lengths` has the length of each.

    Args:
        dataset: samples whose columns are lists of the same length.
        strategy: "bfd" puts the longest sample first into the fullest row that has room (best fit decreasing), and cuts
            the end of samples off that are longer than a row; "bfd_split" makes several samples of them; "wrapped" cuts
            the text of all samples into rows, and has no `seq_lengths`.

    Raises:  ArgumentError for another strategy, and for a length below 1

    Example:
        pack_dataset([{"input_ids": [1, 2, 3]}, {"input_ids": [4]}, {"input_ids": [5, 6]}], 4)
        # [{"input_ids": [1, 2, 3, 4], "seq_lengths": [3, 1]}, {"input_ids": [5, 6], "seq_lengths": [2]}]
    """
    if strategy not in STRATEGIES:
        raise ArgumentError(f"strategy={strategy!r:.80}", hint=f"pass one of {', '.join(STRATEGIES)}")
    if seq_length < 1:
        raise ArgumentError(f"seq_length={seq_length}", hint="pass 1 or more")
    samples = [dict(each) for each in dataset]
    if strategy == "wrapped":
        joined = {name: [value for each in samples for value in each[name]] for name in (samples[0] if samples else ())}
        return _cut(joined, seq_length)
    pieces = [piece for each in samples for piece in _cut(each, seq_length)[: None if strategy == "bfd_split" else 1]]
    return [
        _joined([pieces[number] for number in row]) for row in _rows([_length(each) for each in pieces], seq_length)
    ]


def _length(columns: Columns) -> int:
    return len(next(iter(columns.values())))


def _cut(columns: Columns, size: int) -> list[dict[str, list[Any]]]:
    """Return the pieces of at most `size` elements; none of an empty sample."""
    length = _length(columns) if columns else 0
    return [{name: list(values[at : at + size]) for name, values in columns.items()} for at in range(0, length, size)]


def _joined(pieces: list[dict[str, list[Any]]]) -> dict[str, list[Any]]:
    columns = {name: [value for each in pieces for value in each[name]] for name in pieces[0]}
    return {**columns, "seq_lengths": [_length(each) for each in pieces]}


def _rows(lengths: list[int], size: int) -> list[list[int]]:
    """Return the numbers of the samples of each row, by best fit decreasing."""
    rows: list[list[int]] = []
    free: list[int] = []  # room that a row has, in rising order, each size once
    by_room: defaultdict[int, deque[int]] = defaultdict(deque)
    for number in sorted(range(len(lengths)), key=lambda i: -lengths[i]):
        at = bisect_left(free, lengths[number])
        if at < len(free):
            room = free[at]
            row = by_room[room].popleft()
            if not by_room[room]:
                del free[at]
        else:
            room, row = size, len(rows)
            rows.append([])
        rows[row].append(number)
        left = room - lengths[number]
        if left:
            if not by_room[left]:
                insort(free, left)
            by_room[left].append(row)
    return rows
