"""Datasets from tables of numbers: CSV files and `.npz` archives."""

from __future__ import annotations

import csv
import os
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import Any

import numpy as np

from tallow import dtypes
from tallow.core.creation import place
from tallow.core.tensor import Tensor
from tallow.data.dataset import TensorDataset
from tallow.errors import ArgumentError, DatasetError
from tallow.io import npz
from tallow.io.regular import regular
from tallow.io.source import Path

Column = str | int
Record = tuple[int, list[str]]  # line number, from 1, and cells


class CSVDataset(TensorDataset):
    """Dataset of the rows of a CSV file: samples are (row,), or (row, target) with a target column.

    Cells may be quoted. Empty lines are skipped.

    Args:
        columns: columns of a row, by name or number, in order; by default all but the target.
        target: the column of the targets, by name or number.
        header: whether the first line contains the column names.
        dtype: dtype of the rows.
        target_dtype: dtype of the targets, by default that of the rows; `str` for class names, which become int64
            labels.
        delimiter: delimiter between cells.

    Attributes:
        columns: the names of a row's columns, or their numbers if there is no header.
        classes: the names of the classes, sorted; empty unless `target_dtype` is `str`.

    Shapes:  row (C,), target ()
    Raises:  DatasetError for an invalid number, with its line and column, and for lines of different lengths;
        ArgumentError for an unknown column
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
        target_column = None if target is None else self._number(target, names)
        if columns is None:
            selected = [i for i in range(len(names)) if i != target_column]
        else:
            selected = [self._number(column, names) for column in columns]
        self.columns = [names[i] for i in selected]
        self.classes: list[str] = []
        rows = _Numbers(self.path, [(i, names[i]) for i in selected], dtypes.as_dtype(dtype))
        if target_column is None:
            _fill(records, rows)
            super().__init__(rows.tensor())
        elif target_dtype is str:
            labels = _Labels(target_column)
            _fill(records, rows, labels)
            self.classes = labels.classes()
            super().__init__(rows.tensor(), labels.tensor())
        else:
            targets = _Numbers(
                self.path, [(target_column, names[target_column])], dtypes.as_dtype(target_dtype or dtype)
            )
            _fill(records, rows, targets)
            super().__init__(rows.tensor(), targets.tensor().squeeze(1))

    def _number(self, column: Column, names: Sequence[Column]) -> int:
        if isinstance(column, int) and 0 <= column < len(names):
            return column
        if names.count(column) != 1:
            raise ArgumentError(
                f"{self.path}: {names.count(column) or 'no'} columns {column!r}; the file has {list(names)}"
            )
        return names.index(column)


class _Numbers:
    """Collector of the numbers in some columns, line by line.

    Args:
        columns: number and name of each column.
    """

    def __init__(self, path: str, columns: list[tuple[int, Column]], dtype: dtypes.dtype) -> None:
        self._path = path
        self._columns = columns
        self._dtype = dtype
        self._parse: Callable[[str], float] = float if dtype.is_floating_point else int
        self._values: list[float] = []
        self._lines = 0

    def add(self, line: int, cells: list[str]) -> None:
        """Add a line.  Raises: DatasetError for an invalid number"""
        try:
            self._values += [self._parse(cells[i]) for i, _ in self._columns]
        except ValueError:
            name, cell = next((name, cells[i]) for i, name in self._columns if not self._is_number(cells[i]))
            raise DatasetError(
                f"{self._path}, line {line}, column {name!r}: {cell!r:.80} is not a number of {self._dtype}",
                hint="correct the file, choose other columns, or another dtype",
            ) from None
        self._lines += 1

    def _is_number(self, cell: str) -> bool:
        try:
            self._parse(cell)
        except ValueError:
            return False
        return True

    def tensor(self) -> Tensor:
        """Return the numbers as a tensor.  Shapes: (lines, columns)"""
        try:
            values = np.array(self._values, np.float64 if self._dtype.is_floating_point else self._dtype.storage)
        except OverflowError as error:
            raise DatasetError(
                f"{self._path}: a number out of range for {self._dtype}: {error}", "choose another dtype"
            ) from error
        return place(values.reshape(self._lines, len(self._columns)), self._dtype, None, False)


class _Labels:
    """Collector of the class names in one column, line by line."""

    def __init__(self, column: int) -> None:
        self._column = column
        self._names: list[str] = []

    def add(self, line: int, cells: list[str]) -> None:
        """Add a line."""
        self._names.append(cells[self._column].strip())

    def classes(self) -> list[str]:
        """Return the distinct names, sorted."""
        return sorted(set(self._names))

    def tensor(self) -> Tensor:
        """Return the label of each line.  Shapes: (lines,), int64"""
        numbers = {name: i for i, name in enumerate(self.classes())}
        return place(np.array([numbers[name] for name in self._names], np.int64), dtypes.int64, None, False)


def _fill(records: Iterator[Record], *columns: _Numbers | _Labels) -> None:
    for line, cells in records:
        for column in columns:
            column.add(line, cells)


def _open_table(path: str, header: bool, delimiter: str) -> tuple[Sequence[Column], Iterator[Record]]:
    """Return the column names, or numbers without a header, and an iterator of lines with their numbers."""
    records = _records(path, delimiter)
    first = next(records, None)
    if first is None:
        raise DatasetError(f"{path}: the file is empty")
    width = len(first[1])
    if header:
        return [name.strip() for name in first[1]], _check_width(width, path, records)
    return range(width), _check_width(width, path, chain([first], records))


def _records(path: str, delimiter: str) -> Iterator[Record]:
    with open(path, newline="", encoding="utf-8-sig", opener=regular) as file:
        lines = csv.reader(file, delimiter=delimiter, strict=True)
        try:
            for cells in lines:
                if cells:
                    yield lines.line_num, cells
        except (csv.Error, UnicodeDecodeError) as error:
            raise DatasetError(
                f"{path}, after line {lines.line_num}: {error}", hint="save it as CSV in UTF-8"
            ) from error


def _check_width(width: int, path: str, records: Iterator[Record]) -> Iterator[Record]:
    for line, cells in records:
        if len(cells) != width:
            raise DatasetError(f"{path}, line {line}: {len(cells)} cells; the first line has {width}")
        yield line, cells


class NPZDataset(TensorDataset):
    """Dataset of the rows of arrays in an `.npz` file: sample i is (a[i], b[i], ...).

    Uncompressed arrays are memory-mapped: a row is read on access.

    Args:
        names: names of the arrays, in sample order; by default all, in file order.

    Raises:  CheckpointError for a damaged file; ArgumentError for an unknown name; ShapeError for arrays of
        different lengths
    """

    def __init__(self, path: Path, names: Sequence[str] | None = None) -> None:
        arrays = npz.load(path)
        self.names = list(arrays) if names is None else list(names)
        unknown = [name for name in self.names if name not in arrays]
        if unknown or not self.names:
            raise ArgumentError(
                f"{os.fspath(path)}: unknown array {', '.join(unknown)}; the file has {', '.join(arrays)}"
            )
        super().__init__(*(arrays[name] for name in self.names))
