"""DataCollatorForLanguageModeling: labels for causal and for masked language models.

Source:  Devlin et al. 2018, arXiv:1810.04805, section 3.1: of 15% of the tokens, 80% are masked, 10% replaced
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tallow.core.creation import tensor
from tallow.errors import ArgumentError, warn
from tallow.random import default_generator
from tallow.transformers.data_collator import IGNORED, Batch, DataCollatorMixin, as_array, padded
from tallow.utils.torch_numbers import NumPyNumbers, TorchNumbers

Ids = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


@dataclass
class DataCollatorForLanguageModeling(DataCollatorMixin):
    """Pads samples and makes labels: the tokens themselves, or with `mlm` those that are masked.

    Labels of other positions are -100. Samples are mappings, or rows of tokens.

    Args:
        mlm: mask tokens, for a masked language model; False for a causal one.
        whole_word_mask: mask all tokens of a word, or none; needs `offset_mapping` in samples.
        mlm_probability: the share of tokens with a label.
        mask_replace_prob: the share of those that become the mask token.
        random_replace_prob: the share of those that become another token.
        pad_to_multiple_of: pad to a multiple of this length.
        seed: of the masks, which are then those of transformers; None draws from tallow's generator.

    Raises:  ArgumentError for a tokenizer without a mask token, and for probabilities outside 0 to 1
    """

    tokenizer: Any
    mlm: bool = True
    whole_word_mask: bool = False
    mlm_probability: float | None = 0.15
    mask_replace_prob: float = 0.8
    random_replace_prob: float = 0.1
    pad_to_multiple_of: int | None = None
    return_tensors: str = "pt"
    seed: int | None = None

    def __post_init__(self) -> None:
        if self.mlm and self.tokenizer.mask_token is None:
            raise ArgumentError("the tokenizer has no mask token", hint="pass mlm=False for a causal language model")
        if self.whole_word_mask and not self.mlm:
            raise ArgumentError("whole_word_mask needs mlm=True")
        names = (*(["mlm_probability"] if self.mlm else []), "mask_replace_prob", "random_replace_prob")
        for name in names:
            value = getattr(self, name)
            if value is None or not 0 <= value <= 1:
                raise ArgumentError(f"{name}={value!r:.80}; expected a number from 0 to 1")
        if self.mask_replace_prob + self.random_replace_prob > 1:
            raise ArgumentError("mask_replace_prob + random_replace_prob must not exceed 1")
        if self.whole_word_mask and self.mask_replace_prob < 1:
            warn("whole_word_mask: words are masked, not replaced by others; mask_replace_prob becomes 1")
            self.mask_replace_prob, self.random_replace_prob = 1.0, 0.0
        self._numbers: dict[str, TorchNumbers | NumPyNumbers] = {}

    def torch_call(self, features: Sequence[Any]) -> Batch:
        return {
            name: tensor(value) if isinstance(value, np.ndarray) else value
            for name, value in self._collate(features, "pt").items()
        }

    def numpy_call(self, features: Sequence[Any]) -> Batch:
        return self._collate(features, "np")

    def _collate(self, features: Sequence[Any], kind: str) -> Batch:
        batch: Batch
        if isinstance(features[0], Mapping):
            batch = dict(padded(self, features, "np"))
        else:
            batch = {"input_ids": self._stacked([as_array(row) for row in features])}
        special, offsets = batch.pop("special_tokens_mask", None), batch.pop("offset_mapping", None)
        ids = np.array(batch["input_ids"])
        if self.mlm:
            batch["input_ids"], batch["labels"] = self._mask(ids, special, offsets, kind)
        else:
            padding = self.tokenizer.pad_token_id
            batch["labels"] = ids.copy() if padding is None else np.where(ids == padding, IGNORED, ids)
        return batch

    def _stacked(self, rows: list[Ids]) -> Ids:
        """Return rows of tokens as one array, padded where their lengths differ."""
        if len({len(row) for row in rows}) == 1 and len(rows[0]) % (self.pad_to_multiple_of or 1) == 0:
            return np.stack(rows)
        batch = padded(self, [{"input_ids": row.tolist()} for row in rows], "np")
        return np.asarray(batch["input_ids"])

    def _mask(self, ids: Ids, special: Any, offsets: Any, kind: str) -> tuple[Ids, Ids]:
        """Return tokens with masks, and labels."""
        assert self.mlm_probability is not None
        if special is None:
            special = [
                self.tokenizer.get_special_tokens_mask(row, already_has_special_tokens=True) for row in ids.tolist()
            ]
        unmasked = np.array(special, bool)
        words: Ids | None = None
        if self.whole_word_mask:
            if offsets is None:
                raise ArgumentError(
                    "whole_word_mask needs offset_mapping in each sample",
                    hint="tokenize with return_offsets_mapping=True",
                )
            words, unmasked = _words(as_array(offsets), unmasked)
        numbers = self._source(kind)
        chosen = numbers.bernoulli(np.where(unmasked, 0.0, self.mlm_probability))
        if words is not None:
            chosen = _whole(words, chosen)
        labels = np.where(chosen, ids, IGNORED)
        masked = self._share(numbers, ids, self.mask_replace_prob) & chosen
        result = np.where(masked, self.tokenizer.convert_tokens_to_ids(self.tokenizer.mask_token), ids)
        if self.mask_replace_prob < 1 and self.random_replace_prob > 0:
            share = self.random_replace_prob / (1 - self.mask_replace_prob)
            replaced = self._share(numbers, ids, share) & chosen & ~masked
            # transformers draws as many tokens as are replaced for arrays, and one for each position for tensors.
            if kind == "np":
                result[replaced] = numbers.integers(len(self.tokenizer), (int(replaced.sum()),))
            else:
                result = np.where(replaced, numbers.integers(len(self.tokenizer), ids.shape), result)
        return result, labels

    @staticmethod
    def _share(numbers: TorchNumbers | NumPyNumbers, ids: Ids, share: float) -> Mask:
        return numbers.bernoulli(np.full(ids.shape, share))

    def _source(self, kind: str) -> TorchNumbers | NumPyNumbers:
        if self.seed is None:
            return NumPyNumbers(default_generator.numpy)
        if kind not in self._numbers:
            own = np.random.default_rng(self.seed)
            self._numbers[kind] = TorchNumbers(self.seed) if kind == "pt" else NumPyNumbers(own)
        return self._numbers[kind]


def _words(offsets: Ids, special: Mask) -> tuple[Ids, Mask]:
    """Return the number of the word of each token, -1 for special tokens, and which tokens do not begin a word."""
    ends = np.roll(offsets[:, :, 1], 1, axis=1)
    after_special = np.roll(special, 1, axis=1)
    ends[:, 0], after_special[:, 0] = -1, False
    begins = ~special & ((offsets[:, :, 0] != ends) | after_special)
    return np.where(special, -1, np.cumsum(begins, axis=1)), ~begins


def _whole(words: Ids, chosen: Mask) -> Mask:
    """Return the tokens of words of which one is chosen."""
    result = np.zeros_like(chosen)
    for row, (numbers, picked) in enumerate(zip(words, chosen, strict=True)):
        result[row] = np.isin(numbers, numbers[picked]) & (numbers != -1)
    return result
