"""Functions from a list of samples to a batch, under transformers' names.

A sample is a mapping from names to values. Batches hold tensors, or NumPy arrays with `return_tensors="np"`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tallow import dtypes
from tallow.core.creation import tensor
from tallow.core.tensor import Tensor
from tallow.errors import ArgumentError

Batch = dict[str, Any]
DataCollator = Callable[[list[Any]], dict[str, Any]]  # what a Trainer takes
IGNORED = -100  # the label of positions without a loss


def _tensor(values: Any, dtype: Any = None) -> Tensor:
    return tensor(values, dtype=dtype)


MAKERS: dict[str, Callable[..., Any]] = {"pt": _tensor, "np": np.array}
INTEGERS: dict[str, Any] = {"pt": dtypes.int64, "np": np.int64}
FLOATS: dict[str, Any] = {"pt": dtypes.float32, "np": np.float32}


def as_array(value: Any) -> npt.NDArray[Any]:
    """Return a tensor, a list or an array as an array."""
    return value.numpy() if isinstance(value, Tensor) else np.asarray(value)


def made(values: Any, return_tensors: str, dtypes_of: Mapping[str, Any] | None = None) -> Any:
    """Return values as the kind of tensors of a name.  Raises: ArgumentError for an unknown name"""
    if return_tensors not in MAKERS:
        raise ArgumentError(f"return_tensors={return_tensors!r:.80}", hint="pass 'pt' or 'np'")
    if isinstance(values, list) and values and isinstance(values[0], Tensor | np.ndarray):
        values = np.stack([as_array(value) for value in values])
    return MAKERS[return_tensors](values, dtype=None if dtypes_of is None else dtypes_of[return_tensors])


def default_data_collator(features: Sequence[Any], return_tensors: str = "pt") -> Batch:
    """Return a batch of the values of samples, which have the same shapes.

    `label` and `label_ids` become `labels`. Texts and None are left out.

    Raises:  ArgumentError for an unknown kind of tensors
    """
    samples: list[Mapping[str, Any]] = [each if isinstance(each, Mapping) else vars(each) for each in features]
    first, batch = samples[0], {}
    named = next((name for name in ("label", "label_ids") if first.get(name) is not None), None)
    if named is not None:
        kinds = FLOATS if as_array(first[named]).dtype.kind == "f" else INTEGERS
        keeps = isinstance(first[named], Tensor | np.ndarray) and named == "label_ids"
        batch["labels"] = made([each[named] for each in samples], return_tensors, None if keeps else kinds)
    for name, value in first.items():
        if name not in ("label", "label_ids") and value is not None and not isinstance(value, str):
            batch[name] = made([each[name] for each in samples], return_tensors)
    return batch


class DataCollatorMixin:
    """The base of collators: `torch_call` for tensors, `numpy_call` for arrays.

    A subclass defines one of the two at least.
    """

    return_tensors: str = "pt"

    def __call__(self, features: Sequence[Any], return_tensors: str | None = None) -> Batch:
        kind = self.return_tensors if return_tensors is None else return_tensors
        if kind == "pt":
            return self.torch_call(features)
        if kind == "np":
            return self.numpy_call(features)
        raise ArgumentError(f"return_tensors={kind!r:.80}", hint="pass 'pt' or 'np'")

    def torch_call(self, features: Sequence[Any]) -> Batch:
        """Return a batch of tensors."""
        raise NotImplementedError(f"{type(self).__name__} has no torch_call")

    def numpy_call(self, features: Sequence[Any]) -> Batch:
        """Return a batch of arrays."""
        raise NotImplementedError(f"{type(self).__name__} has no numpy_call")


@dataclass
class DefaultDataCollator(DataCollatorMixin):
    """`default_data_collator` as an object."""

    return_tensors: str = "pt"

    def __call__(self, features: Sequence[Any], return_tensors: str | None = None) -> Batch:
        return default_data_collator(features, self.return_tensors if return_tensors is None else return_tensors)


@dataclass
class DataCollatorWithPadding:
    """Pads samples to the longest of a batch, with the tokenizer's `pad`.

    Args:
        padding: True or "longest", "max_length", or False.
        max_length: with padding="max_length".
        pad_to_multiple_of: pad to a multiple of this length.
    """

    tokenizer: Any
    padding: bool | str = True
    max_length: int | None = None
    pad_to_multiple_of: int | None = None
    return_tensors: str = "pt"

    def __call__(self, features: Sequence[Any]) -> Batch:
        batch = padded(self, features, self.return_tensors)
        for name in ("label", "label_ids"):
            if name in batch:
                batch["labels"] = batch.pop(name)
        return batch


def padded(collator: Any, features: Sequence[Any], return_tensors: str) -> Any:
    """Return samples as the tokenizer of a collator pads them."""
    return collator.tokenizer.pad(
        features if isinstance(features, list) else list(features),
        padding=getattr(collator, "padding", True),
        max_length=getattr(collator, "max_length", None),
        pad_to_multiple_of=collator.pad_to_multiple_of,
        return_tensors=return_tensors,
    )


def _labels(features: Sequence[Mapping[str, Any]]) -> tuple[str, list[Any] | None, list[dict[str, Any]]]:
    """Return the name of the labels, the labels if there are any, and the samples without them."""
    name = "label" if "label" in features[0] else "labels"
    labels = [feature[name] for feature in features] if name in features[0] else None
    return name, labels, [{key: value for key, value in each.items() if key != name} for each in features]


def _filled(labels: Sequence[Any], length: int, value: int, side: str) -> list[list[Any]]:
    """Return rows of labels, filled to a length."""
    rows = [as_array(label).tolist() for label in labels]
    fill = [[value] * (length - len(row)) for row in rows]
    return [row + more if side == "right" else more + row for row, more in zip(rows, fill, strict=True)]


@dataclass
class DataCollatorForTokenClassification(DataCollatorMixin):
    """Pads samples, and their labels to the same length.

    Args:
        label_pad_token_id: the label of padding.
        others: as DataCollatorWithPadding
    """

    tokenizer: Any
    padding: bool | str = True
    max_length: int | None = None
    pad_to_multiple_of: int | None = None
    label_pad_token_id: int = IGNORED
    return_tensors: str = "pt"

    def torch_call(self, features: Sequence[Any]) -> Batch:
        return self._collate(features, "pt")

    def numpy_call(self, features: Sequence[Any]) -> Batch:
        return self._collate(features, "np")

    def _collate(self, features: Sequence[Any], kind: str) -> Batch:
        name, labels, rest = _labels(features)
        batch: Batch = padded(self, rest, kind)
        if labels is not None:
            length, side = batch["input_ids"].shape[1], self.tokenizer.padding_side
            batch[name] = made(_filled(labels, length, self.label_pad_token_id, side), kind, INTEGERS)
        return batch


@dataclass
class DataCollatorForMultipleChoice(DataCollatorMixin):
    """Pads the choices of all samples to one length: (batch, choices, tokens).

    Args:  as DataCollatorWithPadding
    """

    tokenizer: Any
    padding: bool | str = True
    max_length: int | None = None
    pad_to_multiple_of: int | None = None
    return_tensors: str = "pt"

    def torch_call(self, features: Sequence[Any]) -> Batch:
        _, labels, rest = _labels(features)
        choices = len(rest[0]["input_ids"])
        flat = [{name: value[i] for name, value in each.items()} for each in rest for i in range(choices)]
        batch = {name: value.view(len(rest), choices, -1) for name, value in padded(self, flat, "pt").items()}
        return batch | {"labels": _tensor(labels, dtypes.int64)}


@dataclass
class DataCollatorForSeq2Seq:
    """Pads samples, and their labels to the longest labels.

    Args:
        model: its `prepare_decoder_input_ids_from_labels`, if there is one, makes `decoder_input_ids`.
        label_pad_token_id: the label of padding.
        others: as DataCollatorWithPadding
    """

    tokenizer: Any
    model: Any = None
    padding: bool | str = True
    max_length: int | None = None
    pad_to_multiple_of: int | None = None
    label_pad_token_id: int = IGNORED
    return_tensors: str = "pt"

    def __call__(self, features: Sequence[Any], return_tensors: str | None = None) -> Batch:
        kind = self.return_tensors if return_tensors is None else return_tensors
        _, labels, rest = _labels(features)
        if labels is not None and all(label is None for label in labels):
            labels = None
        batch: Batch = padded(self, rest, kind)
        batch["labels"] = None if labels is None else made(self._pad(labels), kind, INTEGERS)
        if labels is not None and hasattr(self.model, "prepare_decoder_input_ids_from_labels"):
            batch["decoder_input_ids"] = self.model.prepare_decoder_input_ids_from_labels(labels=batch["labels"])
        return batch

    def _pad(self, labels: list[Any]) -> list[list[int]]:
        if self.padding in (False, "do_not_pad"):
            return [as_array(label).tolist() for label in labels]
        length = max(map(len, labels))
        if self.padding == "max_length" and self.max_length is not None:
            length = self.max_length
        if self.pad_to_multiple_of is not None:
            length += -length % self.pad_to_multiple_of
        return _filled(labels, length, self.label_pad_token_id, self.tokenizer.padding_side)


class DataCollatorWithFlattening(DefaultDataCollator):
    """Writes the samples of a batch one after another, as one row without padding.

    The model tells samples apart by `position_ids`, which start anew in each.

    Args:
        return_position_ids: False leaves `position_ids` out.
        separator_id: the label of the first position of each sample.
        return_flash_attn_kwargs: return where samples begin and their greatest length too.
        return_seq_idx: return the number of the sample for each position too.
        position_ids_start: the first position of each sample.
    """

    def __init__(
        self,
        return_tensors: str = "pt",
        return_position_ids: bool = True,
        separator_id: int = IGNORED,
        return_flash_attn_kwargs: bool = False,
        return_seq_idx: bool = False,
        position_ids_start: int = 0,
    ) -> None:
        super().__init__(return_tensors)
        self.return_position_ids = return_position_ids
        self.separator_id = separator_id
        self.return_flash_attn_kwargs = return_flash_attn_kwargs
        self.return_seq_idx = return_seq_idx
        self.position_ids_start = position_ids_start

    def __call__(
        self, features: Sequence[Any], return_tensors: str | None = None, separator_id: int | None = None
    ) -> Batch:
        kind = self.return_tensors if return_tensors is None else return_tensors
        separator = self.separator_id if separator_id is None else separator_id
        ids = [as_array(each["input_ids"]) for each in features]
        labels = [as_array(each["labels"]) for each in features] if "labels" in features[0] else ids
        sizes = [len(row) for row in ids]
        narrow = {"pt": dtypes.int32, "np": np.int32}
        batch = {
            "input_ids": made([np.concatenate(ids)], kind, INTEGERS),
            "labels": made([np.concatenate([np.r_[separator, row[1:]] for row in labels])], kind, INTEGERS),
        }
        if self.return_position_ids:
            places = np.concatenate([np.arange(size) for size in sizes]) + self.position_ids_start
            batch["position_ids"] = made([places], kind, INTEGERS)
        if self.return_seq_idx:
            batch["seq_idx"] = made([np.repeat(np.arange(len(sizes)), sizes)], kind, narrow)
        if self.return_flash_attn_kwargs:
            ends = made(np.cumsum([0, *sizes]).tolist(), kind, narrow)
            batch |= {"cu_seq_lens_q": ends, "cu_seq_lens_k": ends}
            batch |= {"max_length_q": max(sizes), "max_length_k": max(sizes)}
        return batch
