"""Samplers, which determine the order of samples in a `DataLoader`, as in torch.utils.data."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Sized
from itertools import islice
from typing import Any, Generic, TypeVar

from tallow import dtypes
from tallow.core.creation import as_tensor
from tallow.errors import ArgumentError, ArgumentTypeError
from tallow.functions.sampling import multinomial, randint, randperm
from tallow.random import Generator, default_generator

T_co = TypeVar("T_co", covariant=True)
DRAWN_AT_ONCE = 1024  # indices per draw; with replacement, all of them may not fit memory


class Sampler(Generic[T_co]):
    """Base class of samplers. A subclass defines `__iter__`, and `__len__` if the loader's length is needed."""

    def __iter__(self) -> Iterator[T_co]:
        raise NotImplementedError(f"{type(self).__name__} does not define __iter__")


class SequentialSampler(Sampler[int]):
    """Sampler of 0, 1, 2, ... up to the length of the data."""

    def __init__(self, data_source: Sized) -> None:
        self.data_source = data_source

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.data_source)))

    def __len__(self) -> int:
        return len(self.data_source)


class RandomSampler(Sampler[int]):
    """Sampler of indices in random order, or drawn independently with `replacement`.

    Args:
        num_samples: number of indices; by default the length of the data. Beyond that, without replacement, another
            random order follows.
        generator: source of randomness. Restoring its state repeats an order. Without one, each iteration is seeded
            from the default generator.

    Raises:  ArgumentError if num_samples or the length of the data is 0; ArgumentTypeError if replacement is not a bool
    """

    def __init__(
        self,
        data_source: Sized,
        replacement: bool = False,
        num_samples: int | None = None,
        generator: Generator | None = None,
    ) -> None:
        if not isinstance(replacement, bool):
            raise ArgumentTypeError(f"replacement should be a boolean value, but got replacement={replacement}")
        self.data_source = data_source
        self.replacement = replacement
        self._num_samples = num_samples
        self.generator = generator
        _check_count("num_samples", self.num_samples)

    @property
    def num_samples(self) -> int:
        """The number of indices per iteration."""
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def __iter__(self) -> Iterator[int]:
        n, remaining = len(self.data_source), self.num_samples
        generator = self.generator or Generator().manual_seed(draw_seed(None))
        while remaining:
            if self.replacement:
                indices = randint(n, (min(remaining, DRAWN_AT_ONCE),), generator=generator)
            else:
                indices = randperm(n, generator=generator)[:remaining]
            yield from indices.tolist()
            remaining -= len(indices)

    def __len__(self) -> int:
        return self.num_samples


class SubsetRandomSampler(Sampler[int]):
    """Sampler of given indices in random order."""

    def __init__(self, indices: Sequence[int], generator: Generator | None = None) -> None:
        self.indices = indices
        self.generator = generator

    def __iter__(self) -> Iterator[int]:
        for i in randperm(len(self.indices), generator=self.generator).tolist():
            yield self.indices[i]

    def __len__(self) -> int:
        return len(self.indices)


class WeightedRandomSampler(Sampler[int]):
    """Sampler of indices drawn with given weights, which need not sum to 1.

    Raises:  ArgumentError if num_samples is not a positive integer, replacement is not a bool, or weights is not a
        vector
    """

    def __init__(
        self, weights: Any, num_samples: int, replacement: bool = True, generator: Generator | None = None
    ) -> None:
        _check_count("num_samples", num_samples)
        _check_flag("replacement", replacement)
        self.weights = as_tensor(weights, dtype=dtypes.float64)
        if self.weights.ndim != 1:
            raise ArgumentError(
                f"weights should be a 1d sequence but given weights have shape {tuple(self.weights.shape)}"
            )
        self.num_samples = num_samples
        self.replacement = replacement
        self.generator = generator

    def __iter__(self) -> Iterator[int]:
        indices = multinomial(self.weights, self.num_samples, self.replacement, generator=self.generator)
        return iter(indices.tolist())

    def __len__(self) -> int:
        return self.num_samples


class BatchSampler(Sampler[list[int]]):
    """Sampler of lists of `batch_size` indices from another sampler or any iterable.

    Args:
        drop_last: drop the last list if it is shorter.

    Raises:  ArgumentError if batch_size is not a positive integer, or drop_last is not a bool

    Example:
        >>> list(BatchSampler(range(8), batch_size=3, drop_last=False))
        [[0, 1, 2], [3, 4, 5], [6, 7]]
    """

    def __init__(self, sampler: Iterable[int], batch_size: int, drop_last: bool) -> None:
        _check_count("batch_size", batch_size)
        _check_flag("drop_last", drop_last)
        self.sampler = sampler
        self.batch_size = batch_size
        self.drop_last = drop_last

    def __iter__(self) -> Iterator[list[int]]:
        indices = iter(self.sampler)
        while batch := list(islice(indices, self.batch_size)):
            if len(batch) < self.batch_size and self.drop_last:
                return
            yield batch

    def __len__(self) -> int:
        full, rest = divmod(len(self.sampler), self.batch_size)  # type: ignore[arg-type]  # raises as in PyTorch
        return full + bool(rest and not self.drop_last)


def draw_seed(generator: Generator | None) -> int:
    """Draw a seed from a generator, or from the default one."""
    return int((generator or default_generator).numpy.integers(2**63))


def _check_count(name: str, value: Any) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value <= 0:
        raise ArgumentError(f"{name} should be a positive integer value, but got {name}={value}")


def _check_flag(name: str, value: Any) -> None:
    if not isinstance(value, bool):
        raise ArgumentError(f"{name} should be a boolean value, but got {name}={value}")
