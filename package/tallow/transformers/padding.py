"""The arguments `padding`, `truncation` and `max_length`, and the padding of rows that are encoded already.

Source:  transformers 5.23, `PreTrainedTokenizerBase.pad`
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Sized
from typing import Any, NamedTuple

import numpy as np

import tallow
from tallow.core.tensor import Tensor
from tallow.errors import ArgumentError, ArgumentTypeError, warn
from tallow.transformers.batch_encoding import BatchEncoding
from tallow.transformers.tensor_types import Choice, TensorType, plain

UNLIMITED = 10**20  # tokenizers without a limit have 10^30
NO_LIMIT = int(1e30)  # as the files have it, not 10**30


class PaddingStrategy(Choice):
    """The choice of a length for rows: they are padded to the longest, to `max_length`, or none."""

    LONGEST = "longest"
    MAX_LENGTH = "max_length"
    DO_NOT_PAD = "do_not_pad"


class TruncationStrategy(Choice):
    """The choice of the text of a pair that is cut: one of them, the longer one token by token, or none."""

    ONLY_FIRST = "only_first"
    ONLY_SECOND = "only_second"
    LONGEST_FIRST = "longest_first"
    DO_NOT_TRUNCATE = "do_not_truncate"


class Lengths(NamedTuple):
    """The padding, the truncation and the length of rows."""

    padding: PaddingStrategy
    truncation: TruncationStrategy
    max_length: int | None


def lengths_of(
    tokenizer: Any,
    padding: Any = False,
    truncation: Any = None,
    max_length: int | None = None,
    pad_to_multiple_of: int | None = None,
    verbose: bool = True,
) -> Lengths:
    """Return what the arguments of a call mean for a tokenizer.

    Raises:  ArgumentError for unknown words, numbers that are no counts, padding without a token for it, and a
             `max_length` for truncation that is no multiple of `pad_to_multiple_of`
    """
    for name, value in (("max_length", max_length), ("pad_to_multiple_of", pad_to_multiple_of)):
        check_count(name, value)
    if max_length is not None and padding is False and truncation is None:
        truncation = TruncationStrategy.LONGEST_FIRST  # `max_length` alone has always meant this
    pads = _strategy(PaddingStrategy, padding, PaddingStrategy.LONGEST, PaddingStrategy.DO_NOT_PAD)
    cuts = _strategy(
        TruncationStrategy, truncation, TruncationStrategy.LONGEST_FIRST, TruncationStrategy.DO_NOT_TRUNCATE
    )
    if padding is True and max_length is not None and cuts is TruncationStrategy.DO_NOT_TRUNCATE and verbose:
        warn("`max_length` has no effect with padding=True and without truncation; pass padding='max_length'")
    if max_length is None and (pads is PaddingStrategy.MAX_LENGTH or cuts is not TruncationStrategy.DO_NOT_TRUNCATE):
        if tokenizer.model_max_length > UNLIMITED:
            pads = PaddingStrategy.DO_NOT_PAD if pads is PaddingStrategy.MAX_LENGTH else pads
            cuts = TruncationStrategy.DO_NOT_TRUNCATE
        else:
            max_length = tokenizer.model_max_length
    if pads is not PaddingStrategy.DO_NOT_PAD and tokenizer.pad_token_id is None:
        raise ArgumentError(
            "padding: the tokenizer has no pad_token",
            hint="set tokenizer.pad_token = tokenizer.eos_token, or add_special_tokens({'pad_token': '[PAD]'})",
        )
    both = pads is not PaddingStrategy.DO_NOT_PAD and cuts is not TruncationStrategy.DO_NOT_TRUNCATE
    if both and pad_to_multiple_of and max_length is not None and max_length % pad_to_multiple_of:
        raise ArgumentError(
            f"max_length={max_length} is no multiple of pad_to_multiple_of={pad_to_multiple_of}",
            hint="pass a multiple, or leave truncation out",
        )
    return Lengths(pads, cuts, max_length)


def check_count(name: str, value: Any) -> None:
    """Raise ArgumentError for a number of tokens that is none; None counts as one."""
    if value is not None and (not hasattr(value, "__index__") or value < 0):
        raise ArgumentError(f"{name}={value!r:.80}", hint="pass an integer from 0 up")


def _strategy(kind: Any, value: Any, on: Any, off: Any) -> Any:
    if value is None or value is False:
        return off
    return on if value is True else kind(value)


class Padding(NamedTuple):
    """The padding of one row.

    Attributes:
        length: of the row afterwards; None for the length that it has.
        side: "right" or "left".
        with_mask: add an `attention_mask` to a row that has none.
        tokenizer: for the ids of padding and the names of the columns.
    """

    length: int | None
    side: str
    with_mask: bool
    tokenizer: Any

    def pad(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """Return a row with the columns that have a filler padded."""
        tokenizer, main = self.tokenizer, self.tokenizer.model_input_names[0]
        count = len(row[main])
        row = dict(row)
        if self.with_mask and "attention_mask" not in row:
            row["attention_mask"] = [1] * count
        missing = 0 if self.length is None else max(0, self.length - count)
        fillers = {
            "token_type_ids": tokenizer.pad_token_type_id,
            "special_tokens_mask": 1,
            main: tokenizer.pad_token_id,
        }
        if self.with_mask:
            fillers["attention_mask"] = 0
        for name in fillers.keys() & row.keys() if missing else ():
            fill = [fillers[name]] * missing
            row[name] = fill + row[name] if self.side == "left" else row[name] + fill
        return row


class Fill(NamedTuple):
    """The arguments of `pad`, read and checked."""

    lengths: Lengths
    multiple: int | None
    side: str
    with_mask: bool | None


def pad(tokenizer: Any, encoded: Any, fill: Fill, return_tensors: str | TensorType | None) -> Any:
    """Return encoded rows, padded: see `TokenizersBackend.pad`."""
    if isinstance(encoded, list | tuple) and encoded and isinstance(encoded[0], Mapping):
        encoded = {name: [row[name] for row in encoded] for name in encoded[0]}
    main = tokenizer.model_input_names[0]
    if not isinstance(encoded, Mapping) or main not in encoded:
        names = list(encoded) if isinstance(encoded, Mapping) else type(encoded).__name__
        raise ArgumentError(f"pad: no {main!r} in {names}", hint="pass what the tokenizer's call returns")
    column = encoded[main]
    if column is None or (isinstance(column, Sized) and len(column) == 0):
        return {**encoded, "attention_mask": []} if fill.with_mask else encoded
    masks = encoded.get("attention_mask")
    masks = masks if isinstance(masks, list) and masks and getattr(masks[0], "ndim", 0) > 1 else None
    columns = {name: plain(value) for name, value in encoded.items() if name != "attention_mask" or masks is None}
    is_batch = isinstance(columns[main][0], list)
    rows = _rows(columns, len(columns[main])) if is_batch else [columns]
    wants_mask = "attention_mask" in tokenizer.model_input_names if fill.with_mask is None else fill.with_mask
    step = Padding(
        _length(fill, [len(row[main]) for row in rows]), side_of(fill.side), wants_mask and masks is None, tokenizer
    )
    padded = [step.pad(row) for row in rows]
    data: dict[str, Any] = {name: [row[name] for row in padded] for name in padded[0]} if is_batch else padded[0]
    if masks is not None:
        data["attention_mask"] = tallow.stack(masks) if isinstance(masks[0], Tensor) else np.stack(masks)
    return BatchEncoding(data, tensor_type=_kind_of(column[0]) if return_tensors is None else return_tensors)


def _length(fill: Fill, lengths: Sequence[int]) -> int | None:
    """Return the length of padded rows; None for rows that stay as they are."""
    if fill.lengths.padding is PaddingStrategy.DO_NOT_PAD:
        return None
    length = max(lengths) if fill.lengths.padding is PaddingStrategy.LONGEST else fill.lengths.max_length
    return -(-length // fill.multiple) * fill.multiple if length is not None and fill.multiple else length


def side_of(side: str) -> str:
    """Return "right" or "left".  Raises: ArgumentError for anything else"""
    if side not in ("right", "left"):
        raise ArgumentError(f"a side {side!r:.80}", hint="it is 'right' or 'left'")
    return side


def _kind_of(first: Any) -> TensorType | None:
    """Return the kind of the values of a column, given the first one; None for lists."""
    while isinstance(first, list | tuple) and first:
        first = first[0]
    if isinstance(first, Tensor):
        return TensorType.PYTORCH
    if isinstance(first, np.ndarray | np.generic):
        return TensorType.NUMPY
    if not isinstance(first, int | list | tuple):
        raise ArgumentTypeError(f"pad: ids of type {type(first).__name__}", hint="pass lists, arrays or tensors")
    return None


def _rows(columns: Mapping[str, Sequence[Any]], count: int) -> list[dict[str, Any]]:
    unequal = [name for name, values in columns.items() if len(values) != count]
    if unequal:
        raise ArgumentError(f"pad: {count} rows, but other numbers of {', '.join(unequal)}")
    return [{name: values[i] for name, values in columns.items()} for i in range(count)]
