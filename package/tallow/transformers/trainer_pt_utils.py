"""Parts of the Trainer: the order of samples, label smoothing, results of an evaluation."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tallow import dtypes
from tallow.core.tensor import Tensor
from tallow.data import IterableDataset
from tallow.data.sampler import Sampler
from tallow.errors import ArgumentError
from tallow.nn import functional as F
from tallow.nn.module import Module
from tallow.nn.normalization import LayerNorm
from tallow.transformers.data_collator import IGNORED
from tallow.utils.torch_numbers import TorchNumbers

# Parameters that weight decay leaves out, by name.
UNDECAYED = re.compile(r"bias|layernorm|rmsnorm|(?:^|[._])norm(?:$|\.)")


class SeededSampler(Sampler[int]):
    """The samples in the order that transformers and PyTorch see them in an epoch, from a seed."""

    def __init__(self, size: int, seed: int) -> None:
        self.size, self.seed, self.epoch = size, seed, 0

    def set_epoch(self, epoch: int) -> None:
        """Set the number of the epoch, which the order depends on."""
        self.epoch = epoch

    def __iter__(self) -> Iterator[int]:
        yield from TorchNumbers(self.seed + self.epoch).randperm(self.size)
        self.epoch += 1

    def __len__(self) -> int:
        return self.size


class LengthGroupedSampler(Sampler[int]):
    """Random samples, so that those of a batch have about the same length; the longest comes first.

    Args:
        batch_size: samples of an optimizer step.
        dataset: samples with `model_input_name`, "input_ids" by default.
        lengths: those of the samples; None means as in `dataset`.
        seed: of the order.

    Raises:  ArgumentError without a dataset and lengths, and for samples without the name
    """

    def __init__(
        self,
        batch_size: int,
        dataset: Any = None,
        lengths: Sequence[int] | None = None,
        model_input_name: str | None = None,
        seed: int = 0,
    ) -> None:
        if lengths is None:
            lengths = lengths_of(dataset, model_input_name or "input_ids")
        self.batch_size, self.lengths, self.seed, self.epoch = batch_size, [int(each) for each in lengths], seed, 0

    def set_epoch(self, epoch: int) -> None:
        """Set the number of the epoch, which the order depends on."""
        self.epoch = epoch

    def __len__(self) -> int:
        return len(self.lengths)

    def __iter__(self) -> Iterator[int]:
        order = TorchNumbers(self.seed + self.epoch).randperm(len(self.lengths))
        self.epoch += 1
        return iter(grouped_by_length(self.lengths, self.batch_size, order))


def lengths_of(dataset: Any, name: str) -> list[int]:
    """Return the lengths of samples.  Raises: ArgumentError for samples that are not mappings with this name"""
    if dataset is None or not isinstance(dataset[0], Mapping) or name not in dataset[0]:
        raise ArgumentError(f"the lengths of samples are unknown: they have no {name!r}", hint="pass lengths")
    return [len(each[name]) for each in dataset]


def grouped_by_length(lengths: Sequence[int], batch_size: int, order: Sequence[int]) -> list[int]:
    """Return an order with sorted groups of up to 50 batches, the longest sample first."""
    size = batch_size * max(min(len(lengths) // (batch_size * 4), 50), 1)
    groups = [order[start : start + size] for start in range(0, len(order), size)]
    parts = [sorted(group, key=lambda i: lengths[i], reverse=True) for group in groups]
    longest = int(np.argmax([lengths[part[0]] for part in parts])) if parts else 0
    if parts:
        parts[0][0], parts[longest][0] = parts[longest][0], parts[0][0]
    return [i for part in parts for i in part]


class Streamed(IterableDataset[Any]):
    """Samples that can only be read one after another, such as those of an IterableDataset of `datasets`."""

    def __init__(self, samples: Iterable[Any]) -> None:
        self.samples = samples

    def __iter__(self) -> Iterator[Any]:
        return iter(self.samples)

    def set_epoch(self, epoch: int) -> None:
        """Tell the samples the number of the epoch, if their order depends on it."""
        if hasattr(self.samples, "set_epoch"):
            self.samples.set_epoch(epoch)


def readable(dataset: Any) -> Any:
    """Return a dataset that a DataLoader reads: samples without a length are read one after another."""
    is_known = isinstance(dataset, IterableDataset) or hasattr(dataset, "__len__")
    return dataset if is_known or not hasattr(dataset, "__iter__") else Streamed(dataset)


class RemoveColumnsCollator:
    """Leaves out the values of samples that the model has no argument for, and calls another collator."""

    def __init__(self, data_collator: Callable[[list[Any]], Any], signature_columns: Sequence[str]) -> None:
        self.data_collator, self.signature_columns = data_collator, frozenset(signature_columns)

    def __call__(self, features: list[Any]) -> Any:
        kept = [
            {name: value for name, value in each.items() if name in self.signature_columns}
            if isinstance(each, dict)
            else each
            for each in features
        ]
        return self.data_collator(kept)


@dataclass
class LabelSmoother:
    """The loss of logits and labels, of which a share `epsilon` goes to all other labels.

    Source:  Szegedy et al. 2015, arXiv:1512.00567, section 7
    """

    epsilon: float = 0.1
    ignore_index: int = IGNORED

    def __call__(
        self, model_output: Any, labels: Tensor, shift_labels: bool = False, num_items_in_batch: Any = None
    ) -> Tensor:
        """Return the loss.

        Args:
            shift_labels: the label of a position is that of the next one.
            num_items_in_batch: divide by this in place of the number of labels.
        """
        logits = model_output["logits"] if isinstance(model_output, dict) else model_output[0]
        if shift_labels:
            logits, labels = logits[..., :-1, :], labels[..., 1:]
        counted = labels.ne(self.ignore_index)
        losses = -F.log_softmax(logits, dim=-1)
        own = losses.gather(-1, labels.clamp(min=0).unsqueeze(-1)).squeeze(-1)
        spread = losses.sum(dim=-1, dtype=dtypes.float32)
        count = counted.sum() if num_items_in_batch is None else num_items_in_batch
        own = own.masked_fill(~counted, 0.0).sum() / count
        spread = spread.masked_fill(~counted, 0.0).sum() / (count * losses.shape[-1])
        return (1 - self.epsilon) * own + self.epsilon * spread


def decayed_names(model: Module) -> set[str]:
    """Return the names of the parameters with weight decay: all but biases and those of norms."""
    norms = {
        f"{path}.{name}" if path else name
        for path, module in model.named_modules()
        if isinstance(module, LayerNorm)
        for name, _ in module.named_parameters()
    }
    names = {name for name, _ in model.named_parameters()}
    return {name for name in names - norms if not UNDECAYED.search(name.lower())}


def mapped(function: Callable[[Any], Any], tensors: Any) -> Any:
    """Return nested tuples, lists and mappings of tensors with a function applied to each tensor."""
    if isinstance(tensors, list | tuple):
        return type(tensors)(mapped(function, each) for each in tensors)
    if isinstance(tensors, Mapping):
        return {name: mapped(function, each) for name, each in tensors.items()}
    return function(tensors) if isinstance(tensors, Tensor) else tensors


def nested_detach(tensors: Any) -> Any:
    """Return nested tensors without their graphs."""
    return mapped(Tensor.detach, tensors)


def nested_numpify(tensors: Any) -> Any:
    """Return nested tensors as arrays; bfloat16 becomes float32."""

    def array(value: Tensor) -> npt.NDArray[Any]:
        return (value.float() if value.dtype == dtypes.bfloat16 else value).cpu().numpy()

    return mapped(array, tensors)


def nested_concat(parts: Sequence[Any], padding_index: int = IGNORED) -> Any:
    """Return nested arrays one after another; rows of different lengths are filled with `padding_index`."""
    first = parts[0]
    if isinstance(first, list | tuple):
        return type(first)(nested_concat(each, padding_index) for each in zip(*parts, strict=True))
    if isinstance(first, Mapping):
        return {name: nested_concat([part[name] for part in parts], padding_index) for name in first}
    arrays = [np.atleast_1d(part) for part in parts]
    if arrays[0].ndim < 2 or len({array.shape[1] for array in arrays}) == 1:
        return np.concatenate(arrays)
    width = max(array.shape[1] for array in arrays)
    filled = np.full((sum(map(len, arrays)), width, *arrays[0].shape[2:]), padding_index, arrays[0].dtype)
    row = 0
    for array in arrays:
        filled[row : row + len(array), : array.shape[1]] = array
        row += len(array)
    return filled


def find_batch_size(tensors: Any) -> int | None:
    """Return the length of the first tensor among nested values."""
    if isinstance(tensors, Tensor | np.ndarray):
        return tensors.shape[0] if tensors.ndim else None
    values = tensors.values() if isinstance(tensors, Mapping) else tensors if isinstance(tensors, list | tuple) else ()
    return next((size for value in values if (size := find_batch_size(value)) is not None), None)
