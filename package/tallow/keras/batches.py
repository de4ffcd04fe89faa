"""From what a user gives to `fit` to batches of (x, y, sample_weight), each a tensor or a structure of tensors."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from math import ceil
from typing import Any

import numpy as np

from tallow import devices, dtypes
from tallow.data import DataLoader, Dataset, IterableDataset
from tallow.dtypes import Array
from tallow.errors import ArgumentError, ArgumentTypeError, DtypeError
from tallow.keras.py_dataset import PyDataset, Walk
from tallow.keras.settings import max_steps_per_epoch
from tallow.keras.structure import flatten, map_structure
from tallow.random import default_generator
from tallow.tensor import Tensor, wrap

Batch = tuple[Any, Any, Any]
DEFAULT_SIZE = 32


class ArrayBatches:
    """Batches of rows of arrays that have the same length.

    Args:
        batch_size: rows of a batch; the last may have fewer.
        shuffle: take the rows in a new order each time: True, or "batch" to keep those of a batch together.
    """

    def __init__(self, x: Any, y: Any, sample_weight: Any, batch_size: int, shuffle: bool | str = False) -> None:
        if not isinstance(batch_size, int | np.integer) or batch_size < 1:
            raise ArgumentError(f"batch_size must be an integer, 1 or more, not {batch_size!r}")
        self._data = (x, y, sample_weight)
        self._rows = row_count(x, y, sample_weight)
        self._size = batch_size
        self._shuffle = shuffle

    def __len__(self) -> int:
        return ceil(self._rows / self._size)

    def __iter__(self) -> Iterator[Batch]:
        for rows in self._places():
            yield self._batch(rows)

    def first(self) -> Batch:
        return self._batch(slice(0, self._size))

    def _batch(self, rows: Any) -> Batch:
        x, y, sample_weight = map_structure(lambda array: _take(array, rows), self._data)
        return x, y, sample_weight

    def _places(self) -> Iterator[Any]:
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
    """Batches that something else makes: an iterable, such as a DataLoader, of x, (x, y) or (x, y, sample_weight)."""

    def __init__(self, source: Iterable[Any], class_weight: Mapping[int, float] | None = None) -> None:
        self._source = source
        self._class_weight = class_weight
        self._begun: Iterator[Any] | None = None  # with `_ahead` taken from it
        self._ahead: list[Batch] = []

    def __len__(self) -> int:
        """The number of batches; 0 if it is not known."""
        try:
            return len(self._source)  # type: ignore[arg-type]
        except TypeError:
            return 0

    def __iter__(self) -> Iterator[Batch]:
        begun, self._begun = self._begun or iter(self._source), None
        while self._ahead:
            yield self._ahead.pop()
        for item in begun:
            yield self._batch(item)

    def first(self) -> Batch:
        """The batch that comes next, which still comes.

        Raises:  ArgumentError if there is none
        """
        if not self._ahead:
            self._begun = iter(self._source)
            for item in self._begun:
                self._ahead.append(self._batch(item))
                break
            else:
                raise _nothing()
        return self._ahead[0]

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
    """The batches of what was given to `fit`, `evaluate` or `predict`.

    Args:
        x: an array or tensor, lists of numbers, or a list or dict of these for a model with several inputs; or a
            `tallow.data.Dataset`; or a `keras.utils.PyDataset` or an iterable of batches. All but the first have the
            targets and the weights too.

    Raises:  ArgumentError for lengths that differ, or data without a row; DtypeError for what is no number
    """
    if class_weight is not None and sample_weight is not None:
        raise ArgumentError("give class_weight or sample_weight, not both")
    if isinstance(x, PyDataset):
        x = Walk(x, bool(shuffle))
    elif isinstance(x, Dataset):
        shuffled = bool(shuffle) and not isinstance(x, IterableDataset)
        x, batch_size = DataLoader(x, batch_size or DEFAULT_SIZE, shuffled), None
    if is_iterable_of_batches(x):
        for name, given in (("y", y), ("sample_weight", sample_weight), ("batch_size", batch_size)):
            if given is not None:
                raise ArgumentError(
                    f"{name} was given, and x is a {type(x).__name__}, which yields batches itself",
                    mend="let it yield (x, y) or (x, y, sample_weight), in batches",
                )
        return IterableBatches(x, class_weight)
    x, y, sample_weight = as_arrays(x, y, sample_weight)
    rows = row_count(x, y, sample_weight)
    if not rows:
        raise ArgumentError("the data has no sample: its arrays have length 0")
    if class_weight is not None:
        sample_weight = class_weights(y, class_weight)
    if batch_size is None:
        batch_size = ceil(rows / steps) if steps else DEFAULT_SIZE
    return ArrayBatches(x, y, sample_weight, batch_size, shuffle)


def validation_batches(data: Any, batch_size: int | None, steps: int | None) -> Batches:
    """The batches of `validation_data`: (x, y), (x, y, sample_weight), or anything that `batches` takes as x."""
    x, y, sample_weight = unpack_x_y_sample_weight(data)
    has_batches = is_iterable_of_batches(x) and not isinstance(x, Dataset)
    return batches(x, y, sample_weight, batch_size=None if has_batches else batch_size, steps=steps)


def _limited(steps: int | None, known: int) -> int | None:
    """So many batches, or fewer where there is a limit; `known` is how many there are, 0 if that is not known."""
    limit = max_steps_per_epoch()
    if limit is None or limit >= (steps or known or limit + 1):
        return steps
    warnings.warn(f"the setting max_steps_per_epoch limits an epoch to {limit} batches", stacklevel=4)
    return limit


class Epochs:
    """Batches in portions of an epoch: all of them, or so many, going on where the last epoch ended.

    Attributes:
        steps: batches of an epoch; None if that is not known before the end of the first.
    """

    def __init__(self, source: Batches, steps: int | None = None) -> None:
        self.source = source
        steps = _limited(steps, len(source))
        self._portion = steps
        self.steps = steps or len(source) or None
        self._begun: Iterator[Batch] | None = None

    def restart(self) -> None:
        """Begin the data anew in the next epoch, if it can be."""
        self._begun = None

    def epoch(self) -> Iterator[Batch]:
        """The batches of the next epoch. Fewer than there should be is a warning, none at all an error."""
        if self._portion is None:
            yield from self._whole()
            return
        taken = 0
        for _ in range(2):  # what the last epoch left may be nothing; then the data begins again
            self._begun = iter(self.source) if self._begun is None else self._begun
            for batch in islice(self._begun, self._portion):
                taken += 1
                yield batch
            if taken:
                break
            self._begun = None
        if not taken:
            raise _nothing()
        if taken < self._portion:
            self._begun = None
            warnings.warn(f"the data ran out after {taken} of the {self._portion} steps of an epoch", stacklevel=3)

    def _whole(self) -> Iterator[Batch]:
        count = 0
        for batch in self.source:
            count += 1
            yield batch
        if not count:
            raise _nothing()
        self.steps = count


def _nothing() -> ArgumentError:
    return ArgumentError(
        "the data gave no batch",
        mend="a generator can be walked through once: pass steps_per_epoch, or what can be iterated over again",
    )


# --------------------------------------------------------------------------------------- arrays, and structures of them


def is_iterable_of_batches(x: Any) -> bool:
    return (
        (hasattr(x, "__iter__") or isinstance(x, PyDataset))
        and not isinstance(x, Tensor | list | tuple | dict | str)
        and not devices.is_array(x)
        and not hasattr(x, "__array__")
    )


def pack_x_y_sample_weight(x: Any, y: Any = None, sample_weight: Any = None) -> Any:
    """What `unpack_x_y_sample_weight` takes apart: (x, y, sample_weight), (x, y), or x, in a tuple if it is a list."""
    if sample_weight is not None:
        return x, y, sample_weight
    if y is not None:
        return x, y
    return (x,) if isinstance(x, list | tuple) else x


def unpack_x_y_sample_weight(data: Any) -> Batch:
    """(x, y, sample_weight) of a batch, with None for what it does not have; a batch that is no tuple or list is x.

    Raises:  ArgumentError for a tuple that is longer
    """
    if not isinstance(data, list | tuple):
        return data, None, None
    if not 1 <= len(data) <= 3:
        raise ArgumentError(
            f"a batch of {len(data)} parts",
            mend="let it be x, (x,), (x, y) or (x, y, sample_weight), with lists within",
        )
    x, y, sample_weight = (*data, None, None)[:3]
    return x, y, sample_weight


def as_arrays(x: Any, y: Any = None, sample_weight: Any = None) -> Batch:
    """Each as an array, or a structure of arrays; None stays. A list of numbers, or of lists of them, is one array.

    Raises:  DtypeError for what is no number, ArgumentError for sequences of different lengths
    """
    return _as_arrays("x", x), _as_arrays("y", y), _as_arrays("sample_weight", sample_weight)


def _as_arrays(name: str, x: Any) -> Any:
    if isinstance(x, dict):
        return {key: _as_arrays(f"{name}[{key!r}]", part) for key, part in x.items()}
    if isinstance(x, list | tuple) and any(isinstance(part, dict) or getattr(part, "shape", ()) for part in x):
        return [_as_arrays(f"{name}[{i}]", part) for i, part in enumerate(x)]
    return _as_array(name, x)


def _as_array(name: str, x: Any) -> Array | None:
    """The array of a tensor, a sequence of numbers, a data frame; `name` is for messages."""
    if x is None:
        return None
    if isinstance(x, Tensor):
        return x.array
    if devices.is_array(x) and not isinstance(x, np.ndarray):
        return x
    try:
        array = np.asarray(x)
    except ValueError as error:
        raise ArgumentError(f"{name} is no array: {error}", mend="give all its rows the same length") from error
    if array.dtype.kind not in "biuf":
        raise DtypeError(
            f"{name} is not numeric: it has dtype {array.dtype}", mend="encode text and dates as numbers first"
        )
    return array.astype(np.int32) if array.dtype == np.uint16 else array  # tallow keeps bfloat16 in uint16


def as_tensor(array: Array | None) -> Tensor | None:
    """The tensor of an array; floating ones in the default dtype, as layers have it."""
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
    """The length that all arrays have.

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
        raise ArgumentTypeError("there is no data: x is None")
    if len({n for counts in lengths.values() for n in counts}) > 1:
        each = ", ".join(f"{name} has {' and '.join(map(str, sorted({*counts})))}" for name, counts in lengths.items())
        raise ArgumentError(
            f"the numbers of samples differ: {each}",
            mend="give a target, and a weight, for each sample; a list of arrays has one for each input of the model",
        )
    return next(iter(lengths.values()))[0]


def split(structures: Batch, fraction: float) -> tuple[Batch, Batch]:
    """The first samples, and the last `fraction` of them.

    Raises:  ArgumentError where one of the two would be empty
    """
    if not 0 < fraction < 1:
        raise ArgumentError(f"validation_split must be between 0 and 1, not {fraction}")
    if is_iterable_of_batches(structures[0]):
        raise ArgumentError("validation_split needs arrays", mend="pass validation_data instead")
    arrays = as_arrays(*structures)
    rows = row_count(*arrays)
    at = int(rows * (1 - fraction))
    if not 0 < at < rows:
        raise ArgumentError(f"validation_split={fraction} of {rows} samples leaves none on one of the sides")

    def part(where: slice) -> Batch:
        x, y, sample_weight = (map_structure(lambda a: None if a is None else a[where], s) for s in arrays)
        return x, y, sample_weight

    return part(slice(0, at)), part(slice(at, rows))


def class_weights(y: Any, class_weight: Mapping[int, float]) -> Array:
    """The weight of each sample by its class; 1 for classes that are not named.

    Shapes:  y (B) or (B, 1) with labels, or (B, C), one-hot -> (B)
    """
    if y is None or isinstance(y, list | tuple | dict):
        raise ArgumentError(
            "class_weight needs targets y, of a model with one output", mend="pass sample_weight instead"
        )
    if not isinstance(class_weight, Mapping):
        raise ArgumentTypeError(
            f"class_weight must be a dict, not {class_weight!r}", mend="give the weight of each class: {0: 1.0, 1: 2.5}"
        )
    xp = devices.array_module(y)
    labels = y.argmax(-1) if y.ndim > 1 and y.shape[-1] > 1 else y.reshape(len(y), -1)[:, 0]
    weights = xp.ones(len(y), np.float32)
    for label, weight in class_weight.items():
        weights[xp.round(labels) == label] = weight
    return weights
