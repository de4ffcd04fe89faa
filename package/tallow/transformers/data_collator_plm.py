"""DataCollatorForPermutationLanguageModeling: spans to predict, and who sees whom in a random order of the tokens.

Letters: B batch, T tokens.

Source:  Yang et al. 2019, arXiv:1906.08237, section 2.2
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tallow.core.creation import tensor
from tallow.errors import ArgumentError
from tallow.random import default_generator
from tallow.transformers.data_collator import IGNORED, Batch, DataCollatorMixin, padded


@dataclass
class DataCollatorForPermutationLanguageModeling(DataCollatorMixin):
    """Pads samples and makes `perm_mask` (B, T, T), `target_mapping` (B, T, T) and `labels` (B, T) for an XLNet.

    Spans of tokens are masked and to be predicted. Draws follow tallow's generator: they are not those of transformers.

    Args:
        plm_probability: the share of tokens to predict.
        max_span_length: the most tokens of a span.

    Raises:  ArgumentError for a tokenizer without a mask token, for a share that is not between 0 and 1, and for texts
             of an odd number of tokens: half of a text is the memory of the other
    """

    tokenizer: Any
    plm_probability: float = 1 / 6
    max_span_length: int = 5
    return_tensors: str = "pt"
    pad_to_multiple_of = None

    def torch_call(self, features: Sequence[Any]) -> Batch:
        return {name: tensor(value) for name, value in self.numpy_call(features).items()}

    def numpy_call(self, features: Sequence[Any]) -> Batch:
        if not 0 < self.plm_probability <= 1 or self.max_span_length < 1:
            raise ArgumentError(f"plm_probability={self.plm_probability}, max_span_length={self.max_span_length}")
        if self.tokenizer.mask_token is None:
            raise ArgumentError("the tokenizer has no mask token", hint="tokenizer.add_special_tokens adds one")
        rows = [each["input_ids"] if isinstance(each, Mapping) else each for each in features]
        batch = padded(self, [{"input_ids": np.asarray(row).tolist()} for row in rows], "np")
        ids = np.array(batch["input_ids"], np.int64)
        count, length = ids.shape
        if length % 2:
            raise ArgumentError(f"texts of {length} tokens", hint="pad them to an even number")
        special = np.array(
            [self.tokenizer.get_special_tokens_mask(row, already_has_special_tokens=True) for row in ids.tolist()], bool
        )
        if self.tokenizer.pad_token_id is not None:
            special |= ids == self.tokenizer.pad_token_id
        masked = np.stack([self._spans(length) for _ in range(count)]) & ~special
        hidden = np.stack([_hidden(masked[row], special[row]) for row in range(count)])
        return {
            "input_ids": np.where(masked, self.tokenizer.mask_token_id, ids),
            "perm_mask": hidden.astype(np.float32),
            "target_mapping": np.broadcast_to(np.eye(length, dtype=np.float32), (count, length, length)).copy(),
            "labels": np.where(masked, ids, IGNORED),
        }

    def _spans(self, length: int) -> npt.NDArray[np.bool_]:
        """Return which of `length` tokens are in a span, each of which has a context of its own."""
        numbers, chosen, start = default_generator.numpy, np.zeros(length, np.bool_), 0
        while start < length:
            span = int(numbers.integers(1, self.max_span_length + 1))
            context = int(span / self.plm_probability)
            first = start + int(numbers.integers(0, context - span + 1))
            chosen[first : first + span] = True
            start += context
        return chosen


def _hidden(masked: npt.NDArray[np.bool_], special: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Return who does not see whom, (T, T): masked tokens are hidden from those that come earlier in a random order."""
    half = len(masked) // 2
    shuffled = default_generator.numpy.permutation(half)
    places = np.concatenate([shuffled, shuffled + half])
    order = np.empty_like(places)
    order[:] = places
    order[~masked & ~special] = -1  # the others see no masked token, and all see them
    hidden: npt.NDArray[np.bool_] = (order[:, None] <= order[None]) & masked
    return hidden
