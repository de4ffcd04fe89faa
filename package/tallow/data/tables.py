"""Tables of numbers: CSV files, and NumPy's archives."""

from __future__ import annotations

import csv
import os
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import Any

import numpy as np

from tallow import dtypes
from tallow.creation import place
from tallow.data.dataset import TensorDataset
from tallow.errors import ArgumentError, DatasetError
from tallow.io import npz
from tallow.io.source import Path
from tallow.tensor import Tensor

Column = str | int
Record = tuple[int, list[str]]  # the number of a line, from 1, and its cells


class CSVDataset(TensorDataset):
    """The rows of a CSV file: samples are (row,), or (row, target) if there is a target column.

    Cells may be quoted. Empty lines are skipped.

    Args:
        columns: which ones a row has, by name or number, in this order; by default all but the target.
        target: the column of the targets, by name or number.
        header: the first line has the names of the columns.
        dtype: of the rows.
        target_dtype: of the targets, by default that of the rows; `str` for names of classes, whose numbers are int64.
        delimiter: between cells.

    Attributes:
        columns: the names of a row's columns, or their numbers if there is no header.
        classes: the names of the classes, sorted; empty unless `target_dtype` is `str`.

    Shapes:  row (C,), target ()
    Raises:  DatasetError for a cell that is no number of the dtype, with its line and column, and for lines of
        different lengths; ArgumentError for a column that there is not
    """

    def __init__(
        self,
        path: Path,
        columns: Sequence[Column] | None = None,
        target: Column | None = None,
        header: bool = True,
        dtype: Any = dtypes.float32,
        target_dtype: Any = None,
        delimiter: str = ",",
    ) -> None:
        self.path = os.fspath(path)
        names, records = _open_table(self.path, header, delimiter)
        target_at = None if target is None else self._number(target, names)
        if columns is None:
            chosen = [i for i in range(len(names)) if i != target_at]
        else:
            chosen = [self._number(column, names) for column in columns]
        self.columns = [names[i] for i in chosen]
        self.classes: list[str] = []
        rows = _Numbers(self.path, [(i, names[i]) for i in chosen], dtypes.as_dtype(dtype))
        if target_at is None:
            _fill(records, rows)
            super().__init__(rows.tensor())
        elif target_dtype is str:
            words = _Words(target_at)
            _fill(records, rows, words)
            self.classes = words.classes()
            super().__init__(rows.tensor(), words.tensor())
        else:
            targets = _Numbers(self.path, [(target_at, names[target_at])], dtypes.as_dtype(target_dtype or dtype))
            _fill(records, rows, targets)
            super().__init__(rows.tensor(), targets.tensor().squeeze(1))

    def _number(self, column: Column, names: Sequence[Column]) -> int:
        if isinstance(column, int) and 0 <= column < len(names):
            return column
        if names.count(column) != 1:
            raise ArgumentError(
                f"{self.path}: {names.count(column) or 'no'} columns {column!r}; there are {list(names)}"
            )
        return names.index(column)


class _Numbers:
    """The numbers in some columns, line by line.

    Args:
        columns: the number and name of each.
    """

    def __init__(self, path: str, columns: list[tuple[int, Column]], dtype: dtypes.dtype) -> None:
        self._path = path
        self._columns = columns
        self._dtype = dtype
        self._parse: Callable[[str], float] = float if dtype.is_floating_point else int
        self._values: list[float] = []
        self._lines = 0

    def add(self, line: int, cells: list[str]) -> None:
        try:
            self._values += [self._parse(cells[i]) for i, _ in self._columns]
        except ValueError:
            name, cell = next((name, cells[i]) for i, name in self._columns if not self._is_number(cells[i]))
            raise DatasetError(
                f"{self._path}, line {line}, column {name!r}: {cell!r:.80} is not a number of {self._dtype}",
                mend="mend the file, choose other columns, or another dtype",
            ) from None
        self._lines += 1

    def _is_number(self, cell: str) -> bool:
        try:
            self._parse(cell)
        except ValueError:
            return False
        return True

    def tensor(self) -> Tensor:
        """Shapes: (lines, columns)"""
        try:
            values = np.array(self._values, np.float64 if self._dtype.is_floating_point else self._dtype.storage)
        except OverflowError as error:
            raise DatasetError(
                f"{self._path}: a number beyond {self._dtype}: {error}", "choose another dtype"
            ) from error
        return place(values.reshape(self._lines, len(self._columns)), self._dtype, None, False)


class _Words:
    """The names of classes in one column, line by line."""

    def __init__(self, column: int) -> None:
        self._column = column
        self._words: list[str] = []

    def add(self, line: int, cells: list[str]) -> None:
        self._words.append(cells[self._column].strip())

    def classes(self) -> list[str]:
        return sorted(set(self._words))

    def tensor(self) -> Tensor:
        """The number of each line's class.  Shapes: (lines,), int64"""
        numbers = {name: i for i, name in enumerate(self.classes())}
        return place(np.array([numbers[word] for word in self._words], np.int64), dtypes.int64, None, False)


def _fill(records: Iterator[Record], *columns: _Numbers | _Words) -> None:
    for line, cells in records:
        for column in columns:
            column.add(line, cells)


def _open_table(path: str, header: bool, delimiter: str) -> tuple[Sequence[Column], Iterator[Record]]:
    """The names of the columns, or their numbers if there is no header; and the lines with their numbers."""
    records = _records(path, delimiter)
    first = next(records, None)
    if first is None:
        raise DatasetError(f"{path}: there is nothing in it")
    width = len(first[1])
    if header:
        return [name.strip() for name in first[1]], _of_width(width, path, records)
    return range(width), _of_width(width, path, chain([first], records))


def _records(path: str, delimiter: str) -> Iterator[Record]:
    with open(path, newline="", encoding="utf-8-sig") as file:
        lines = csv.reader(file, delimiter=delimiter, strict=True)
        try:
            for cells in lines:
                if cells:
                    yield lines.line_num, cells
        except (csv.Error, UnicodeDecodeError) as error:
            raise DatasetError(
                f"{path}, after line {lines.line_num}: {error}", mend="save it as CSV in UTF-8"
            ) from error


def _of_width(width: int, path: str, records: Iterator[Record]) -> Iterator[Record]:
    for line, cells in records:
        if len(cells) != width:
            raise DatasetError(f"{path}, line {line}: {len(cells)} cells; the first line has {width}")
        yield line, cells


class NPZDataset(TensorDataset):
    """The rows of arrays in an `.npz` file: sample i is (a[i], b[i], ...).

    Arrays that are stored without compression are mapped: a row is read when it is asked for.

    Args:
        names: of the arrays, in the order of a sample; by default all, in the order of the file.

    Raises:  CheckpointError for a damaged file; ArgumentError for a name that there is not; ShapeError for arrays of
        different lengths
    """

    def __init__(self, path: Path, names: Sequence[str] | None = None) -> None:
        arrays = npz.load(path)
        self.names = list(arrays) if names is None else list(names)
        unknown = [name for name in self.names if name not in arrays]
        if unknown or not self.names:
            raise ArgumentError(f"{os.fspath(path)}: no array {', '.join(unknown)}; there are {', '.join(arrays)}")
        super().__init__(*(arrays[name] for name in self.names))
