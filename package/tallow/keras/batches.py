"""Convert the data passed to `fit` to batches of (x, y, sample_weight), each a tensor or a structure of tensors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from math import ceil
from typing import Any

import numpy as np

from tallow import devices, dtypes
from tallow.core.tensor import Tensor, wrap
from tallow.data import DataLoader, Dataset, IterableDataset
from tallow.dtypes import Array
from tallow.errors import ArgumentError, ArgumentTypeError, DtypeError, warn
from tallow.keras.py_dataset import PyDataset, PyDatasetBatches
from tallow.keras.settings import max_steps_per_epoch
from tallow.keras.structure import flatten, map_structure
from tallow.random import default_generator

Batch = tuple[Any, Any, Any]
DEFAULT_SIZE = 32


class ArrayBatches:
    """Batches of rows of arrays of the same length.

    Args:
        batch_size: the number of rows per batch; the last batch may have fewer.
        shuffle: use a new order of rows each time: True, or "batch" to shuffle only the order of the batches.
    """

    def __init__(self, x: Any, y: Any, sample_weight: Any, batch_size: int, shuffle: bool | str = False) -> None:
        if not isinstance(batch_size, int | np.integer) or batch_size < 1:
            raise ArgumentError(f"batch_size must be an integer of at least 1, not {batch_size!r}")
        self._data = (x, y, sample_weight)
        self._rows = row_count(x, y, sample_weight)
        self._size = batch_size
        self._shuffle = shuffle

    def __len__(self) -> int:
        return ceil(self._rows / self._size)

    def __iter__(self) -> Iterator[Batch]:
        for rows in self._row_indices():
            yield self._batch(rows)

    def first(self) -> Batch:
        """Return the first batch."""
        return self._batch(slice(0, self._size))

    def _batch(self, rows: Any) -> Batch:
        x, y, sample_weight = map_structure(lambda array: _take(array, rows), self._data)
        return x, y, sample_weight

    def _row_indices(self) -> Iterator[Any]:
        starts = range(0, self._rows, self._size)
        if not self._shuffle:
            yield from (slice(start, start + self._size) for start in starts)
        elif self._shuffle == "batch":
            order = default_generator.numpy.permutation(len(starts))
            yield from (slice(starts[i], starts[i] + self._size) for i in order)
        else:
            order = default_generator.numpy.permutation(self._rows)
            yield from (order[start : start + self._size] for start in starts)


class IterableBatches:
    """Batches from an iterable, such as a DataLoader, of x, (x, y) or (x, y, sample_weight)."""

    def __init__(self, source: Iterable[Any], class_weight: Mapping[int, float] | None = None) -> None:
        self._source = source
        self._class_weight = class_weight
        self._iterator: Iterator[Any] | None = None  # an iterator from which the batches in `_queue` were taken
        self._queue: list[Batch] = []

    def __len__(self) -> int:
        """Return the number of batches; 0 if it is unknown."""
        try:
            return len(self._source)  # type: ignore[arg-type]
        except TypeError:
            return 0

    def __iter__(self) -> Iterator[Batch]:
        iterator, self._iterator = self._iterator or iter(self._source), None
        while self._queue:
            yield self._queue.pop()
        for item in iterator:
            yield self._batch(item)

    def first(self) -> Batch:
        """Return the next batch without consuming it.

        Raises:  ArgumentError if there is none
        """
        if not self._queue:
            self._iterator = iter(self._source)
            for item in self._iterator:
                self._queue.append(self._batch(item))
                break
            else:
                raise _no_batches_error()
        return self._queue[0]

    def _batch(self, item: Any) -> Batch:
        x, y, sample_weight = as_arrays(*unpack_x_y_sample_weight(item))
        row_count(x, y, sample_weight)
        if self._class_weight is not None:
            sample_weight = class_weights(y, self._class_weight)
        return map_structure(as_tensor, (x, y, sample_weight))


Batches = ArrayBatches | IterableBatches


def batches(
    x: Any,
    y: Any = None,
    sample_weight: Any = None,
    *,
    batch_size: int | None = None,
    steps: int | None = None,
    shuffle: bool | str = False,
    class_weight: Mapping[int, float] | None = None,
) -> Batches:
    """Return the batches of the data passed to `fit`, `evaluate` or `predict`.

    Args:
        x: an array or tensor, lists of numbers, or a list or dict of these for a model with several inputs; or a
            `tallow.data.Dataset`, a `keras.utils.PyDataset` or an iterable of batches, which also contain the targets
            and weights.

    Raises:  ArgumentError for different lengths, or data without a row; DtypeError for data that is not numeric
    """
    if class_weight is not None and sample_weight is not None:
        raise ArgumentError("class_weight and sample_weight are both set; pass only one of them")
    if isinstance(x, PyDataset):
        x = PyDatasetBatches(x, bool(shuffle))
    elif isinstance(x, Dataset):
        shuffled = bool(shuffle) and not isinstance(x, IterableDataset)
        x, batch_size = DataLoader(x, batch_size or DEFAULT_SIZE, shuffled), None
    if is_iterable_of_batches(x):
        for name, value in (("y", y), ("sample_weight", sample_weight), ("batch_size", batch_size)):
            if value is not None:
                raise ArgumentError(
                    f"{name} cannot be set if x is a {type(x).__name__}, which yields batches",
                    hint="make x yield batches of (x, y) or (x, y, sample_weight)",
                )
        return IterableBatches(x, class_weight)
    x, y, sample_weight = as_arrays(x, y, sample_weight)
    rows = row_count(x, y, sample_weight)
    if not rows:
        raise ArgumentError("the data is empty: its arrays have length 0")
    if class_weight is not None:
        sample_weight = class_weights(y, class_weight)
    if batch_size is None:
        batch_size = ceil(rows / steps) if steps else DEFAULT_SIZE
    return ArrayBatches(x, y, sample_weight, batch_size, shuffle)


def validation_batches(data: Any, batch_size: int | None, steps: int | None) -> Batches:
    """Return the batches of `validation_data`: (x, y), (x, y, sample_weight), or any `x` of `batches`."""
    x, y, sample_weight = unpack_x_y_sample_weight(data)
    has_batches = is_iterable_of_batches(x) and not isinstance(x, Dataset)
    return batches(x, y, sample_weight, batch_size=None if has_batches else batch_size, steps=steps)


def _limit_steps(steps: int | None, available: int) -> int | None:
    """Apply the setting max_steps_per_epoch; `available` is the number of batches, 0 if it is unknown."""
    limit = max_steps_per_epoch()
    if limit is None or limit >= (steps or available or limit + 1):
        return steps
    warn(f"the setting max_steps_per_epoch limits an epoch to {limit} batches")
    return limit


class Epochs:
    """Batches grouped into epochs: all batches, or a fixed number of steps, continuing where the last epoch ended.

    Attributes:
        steps: the number of batches per epoch; None if it is unknown before the end of the first.
    """

    def __init__(self, source: Batches, steps: int | None = None) -> None:
        self.source = source
        steps = _limit_steps(steps, len(source))
        self._epoch_steps = steps
        self.steps = steps or len(source) or None
        self._iterator: Iterator[Batch] | None = None
        self._started = False  # there was an epoch already

    def restart(self) -> None:
        """Start from the beginning of the data in the next epoch, if possible."""
        self._iterator = None

    def epoch(self) -> Iterator[Batch]:
        """Yield the batches of the next epoch. Too few batches are a warning, none in the first epoch an error."""
        if self._epoch_steps is None:
            yield from self._all_batches()
            return
        count = 0
        for _ in range(2):  # the iterator of the last epoch may be exhausted; then the data starts again
            self._iterator = iter(self.source) if self._iterator is None else self._iterator
            for batch in islice(self._iterator, self._epoch_steps):
                count += 1
                yield batch
            if count:
                break
            self._iterator = None
        if count < self._epoch_steps:
            self._iterator = None
            self._report_lack(count, self._epoch_steps)
        self._started = True

    def _all_batches(self) -> Iterator[Batch]:
        count = 0
        for batch in self.source:
            count += 1
            yield batch
        if not count:
            self._report_lack(0, self.steps)
        self._started = True
        self.steps = count or self.steps

    def _report_lack(self, count: int, steps: int | None) -> None:
        if not count and not self._started:
            raise _no_batches_error()
        warn(f"the data ran out after {count} of the {steps} steps of an epoch")


def _no_batches_error() -> ArgumentError:
    return ArgumentError(
        "the data has no batches",
        hint="a generator can be iterated once: pass steps_per_epoch, or an iterable that can be restarted",
    )


# -------------------------------------------------------------------------------------- arrays and structures of them


def is_iterable_of_batches(x: Any) -> bool:
    """Return whether `x` yields batches, unlike arrays, lists and dicts."""
    return (
        (hasattr(x, "__iter__") or isinstance(x, PyDataset))
        and not isinstance(x, Tensor | list | tuple | dict | str)
        and not devices.is_array(x)
        and not hasattr(x, "__array__")
    )


def pack_x_y_sample_weight(x: Any, y: Any = None, sample_weight: Any = None) -> Any:
    """Return (x, y, sample_weight), (x, y), or x, which is put in a tuple if it is a list."""
    if sample_weight is not None:
        return x, y, sample_weight
    if y is not None:
        return x, y
    return (x,) if isinstance(x, list | tuple) else x


def unpack_x_y_sample_weight(data: Any) -> Batch:
    """Return (x, y, sample_weight) of a batch, with None for missing parts; anything but a tuple or list is x.

    Raises:  ArgumentError for a longer tuple
    """
    if not isinstance(data, list | tuple):
        return data, None, None
    if not 1 <= len(data) <= 3:
        raise ArgumentError(
            f"a batch has {len(data)} parts",
            hint="use x, (x,), (x, y) or (x, y, sample_weight); several inputs form a nested list",
        )
    x, y, sample_weight = (*data, None, None)[:3]
    return x, y, sample_weight


def as_arrays(x: Any, y: Any = None, sample_weight: Any = None) -> Batch:
    """Convert each part to an array or a structure of arrays; None stays. Nested lists of numbers become one array.

    Raises:  DtypeError for data that is not numeric, ArgumentError for sequences of different lengths
    """
    return _as_arrays("x", x), _as_arrays("y", y), _as_arrays("sample_weight", sample_weight)


def _as_arrays(name: str, x: Any) -> Any:
    if isinstance(x, dict):
        return {key: _as_arrays(f"{name}[{key!r}]", part) for key, part in x.items()}
    if isinstance(x, list | tuple) and any(isinstance(part, dict) or getattr(part, "shape", ()) for part in x):
        return [_as_arrays(f"{name}[{i}]", part) for i, part in enumerate(x)]
    return _as_array(name, x)


def _as_array(name: str, x: Any) -> Array | None:
    """Return the array of a tensor, a sequence of numbers or a data frame; `name` is for messages."""
    if x is None:
        return None
    if isinstance(x, Tensor):
        return x.array
    if devices.is_array(x) and not isinstance(x, np.ndarray):
        return x
    try:
        array = np.asarray(x)
    except ValueError as error:
        raise ArgumentError(
            f"{name} cannot be converted to an array: {error}", hint="make all its rows the same length"
        ) from error
    if array.dtype.kind not in "biuf":
        raise DtypeError(
            f"{name} is not numeric: it has dtype {array.dtype}", hint="encode text and dates as numbers first"
        )
    return array.astype(np.int32) if array.dtype == np.uint16 else array  # tallow stores bfloat16 in uint16


def as_tensor(array: Array | None) -> Tensor | None:
    """Convert an array to a tensor; floating-point arrays become the default dtype, as in layers."""
    if array is None:
        return None
    if dtypes.dtype_of(array).is_floating_point:
        array = dtypes.cast(array, dtypes.get_default_dtype())
    return wrap(array)


def _take(array: Array | None, rows: Any) -> Tensor | None:
    if array is None:
        return None
    if isinstance(rows, slice):
        return as_tensor(array[rows])
    return as_tensor(array.take(devices.array_module(array).asarray(rows), axis=0))


def row_count(x: Any, y: Any = None, sample_weight: Any = None) -> int:
    """Return the common length of all arrays.

    Raises:  ArgumentError with the lengths, if they differ
    """
    lengths: dict[str, list[int]] = {}
    for name, structure in (("x", x), ("y", y), ("sample_weight", sample_weight)):
        arrays = [array for array in flatten(structure) if array is not None]
        if any(array.ndim == 0 for array in arrays):
            raise ArgumentError(f"{name} is a single number; its first axis must count the samples")
        if arrays:
            lengths[name] = [len(array) for array in arrays]
    if not lengths:
        raise ArgumentTypeError("no data: x is None")
    if len({n for counts in lengths.values() for n in counts}) > 1:
        text = ", ".join(f"{name} has {' and '.join(map(str, sorted({*counts})))}" for name, counts in lengths.items())
        raise ArgumentError(
            f"the numbers of samples differ: {text}",
            hint="pass one target and one weight per sample; a list of arrays means one array per input of the model",
        )
    return next(iter(lengths.values()))[0]


def split(structures: Batch, fraction: float) -> tuple[Batch, Batch]:
    """Split off the last `fraction` of the samples.

    Raises:  ArgumentError if one of the two parts would be empty
    """
    if not 0 < fraction < 1:
        raise ArgumentError(f"validation_split must be between 0 and 1, not {fraction}")
    if is_iterable_of_batches(structures[0]):
        raise ArgumentError("validation_split needs arrays", hint="pass validation_data instead")
    arrays = as_arrays(*structures)
    rows = row_count(*arrays)
    boundary = int(rows * (1 - fraction))
    if not 0 < boundary < rows:
        raise ArgumentError(f"validation_split={fraction} of {rows} samples leaves one part empty")

    def part(rows: slice) -> Batch:
        x, y, sample_weight = (map_structure(lambda a: None if a is None else a[rows], s) for s in arrays)
        return x, y, sample_weight

    return part(slice(0, boundary)), part(slice(boundary, rows))


def class_weights(y: Any, class_weight: Mapping[int, float]) -> Array:
    """Return the weight of each sample by its class; 1 for classes not listed.

    Shapes:  y (B) or (B, 1) with labels, or (B, C), one-hot -> (B)
    """
    if y is None or isinstance(y, list | tuple | dict):
        raise ArgumentError(
            "class_weight needs targets y, of a model with one output", hint="pass sample_weight instead"
        )
    if not isinstance(class_weight, Mapping):
        raise ArgumentTypeError(
            f"class_weight must be a dict, not {class_weight!r}",
            hint="pass the weight of each class, such as {0: 1.0, 1: 2.5}",
        )
    xp = devices.array_module(y)
    labels = y.argmax(-1) if y.ndim > 1 and y.shape[-1] > 1 else y.reshape(len(y), -1)[:, 0]
    weights = xp.ones(len(y), np.float32)
    for label, weight in class_weight.items():
        weights[xp.round(labels) == label] = weight
    return weights
