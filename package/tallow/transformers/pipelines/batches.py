"""Several inputs of a model as one batch, and the outputs of a batch apart again.

An input is a dict: tensors whose first dimension is 1, which the model gets, and anything else, which is a note for
what reads the outputs.

Letters: B inputs of a batch, T positions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

import tallow as tl
from tallow.errors import ArgumentError

Row = dict[str, Any]
PADDED_WITH_ONE = ("p_mask", "special_tokens_mask")  # padding counts as a special token


class Padding:
    """Values and the side of padding, for rows of different lengths.

    Raises:  ArgumentError for a tokenizer without a padding token, and one that pads another side than the sounds
    """

    def __init__(self, tokenizer: Any, extractor: Any) -> None:
        if tokenizer is not None and tokenizer.pad_token_id is None:
            raise ArgumentError(
                "a batch needs padding, and the tokenizer has no pad_token",
                hint="set one: pipe.tokenizer.pad_token_id = pipe.model.config.eos_token_id",
            )
        sides = [getattr(part, "padding_side", None) for part in (tokenizer, extractor)]
        given = {side for side in sides if side is not None}
        if len(given) > 1:
            raise ArgumentError(f"the tokenizer pads the {sides[0]} side, the feature extractor the {sides[1]} side")
        self.side = given.pop() if given else "right"
        self._token = 0 if tokenizer is None else tokenizer.pad_token_id
        self._silence = getattr(extractor, "padding_value", 0.0)

    def value(self, name: str) -> float:
        """Return what fills a tensor of a name."""
        if name in PADDED_WITH_ONE:
            return 1
        return {"input_ids": self._token, "input_values": self._silence, "input_features": self._silence}.get(name, 0)


def joined(rows: Sequence[Row], padding: Padding) -> Row:
    """Return rows as one batch: tensors (B, ...), and lists of what is not a tensor.

    Raises:  ArgumentError for rows of different names
    """
    names = list(rows[0])
    for row in rows:
        if set(row) != set(names):
            raise ArgumentError(f"one batch has inputs with {sorted(names)} and with {sorted(row)}")
    return {name: _joined([row[name] for row in rows], padding.value(name), padding.side) for name in names}


def _joined(values: list[Any], fill: float, side: str) -> Any:
    if not isinstance(values[0], tl.Tensor):
        return values
    lengths = [value.shape[1] if value.ndim > 1 else 0 for value in values]
    if len(set(lengths)) == 1:
        return tl.cat(values)
    longest = max(lengths)
    arrays = [value.detach().cpu().numpy() for value in values]
    together = np.full((len(values), longest, *values[0].shape[2:]), fill, arrays[0].dtype)
    for i, array in enumerate(arrays):
        start = longest - array.shape[1] if side == "left" else 0
        together[i, start : start + array.shape[1]] = array[0]
    return tl.from_numpy(together)


def row_of(outputs: Any, i: int, count: int) -> Any:
    """Return the outputs of one input of a batch, as if it had been alone."""
    if isinstance(outputs, tl.Tensor):
        return outputs[i : i + 1]
    if isinstance(outputs, Mapping):
        kept = {name: _part(value, i, count) for name, value in outputs.items() if name != "past_key_values"}
        kind: Any = type(outputs)
        return kind(kept)
    return type(outputs)(_part(value, i, count) for value in outputs)


def _part(value: Any, i: int, count: int) -> Any:
    if isinstance(value, tl.Tensor):
        return value[i : i + 1]
    if isinstance(value, Mapping):
        return row_of(value, i, count)
    if isinstance(value, tuple):  # a tensor of each layer
        return tuple(_part(each, i, count) for each in value)
    return value[i] if isinstance(value, list) and len(value) == count else value
