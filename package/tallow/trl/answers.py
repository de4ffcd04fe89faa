"""Prompts in the order in which they are answered, and answers as ids.

Letters: B answers, P tokens of a prompt, T tokens of an answer.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, Self

import numpy as np

from tallow.core.apply import apply
from tallow.core.tensor import Tensor
from tallow.data.sampler import Sampler
from tallow.ops.joining import cat
from tallow.trl.rows import right_padded
from tallow.utils.torch_numbers import TorchNumbers


class RepeatedPrompts(Sampler[int]):
    """Prompts, each as often as it has answers, and groups of them as often as they are learned from.

    Args:
        size: number of prompts.
        answers: of a prompt.
        prompts: of a group; what is left over is not taken.
        times: how often a group comes, one time after another.
        seed: of the order, which is PyTorch's; None means that of the samples.
    """

    def __init__(self, size: int, answers: int, prompts: int = 1, times: int = 1, seed: int | None = None) -> None:
        self.size, self.answers, self.prompts, self.times = size, answers, prompts, times
        self._numbers = None if seed is None else TorchNumbers(seed)

    def __iter__(self) -> Iterator[int]:
        order = range(self.size) if self._numbers is None else self._numbers.randperm(self.size)
        for start in range(0, self.size - self.prompts + 1, self.prompts):
            for _ in range(self.times):
                for prompt in order[start : start + self.prompts]:
                    yield from [int(prompt)] * self.answers

    def __len__(self) -> int:
        return self.size // self.prompts * self.prompts * self.answers * self.times


class Answers(NamedTuple):
    """Answers that a model wrote, as ids: prompts are padded on the left, answers on the right.

    Attributes:
        prompt_ids, prompt_mask: (B, P).
        ids: (B, T).
        mask: (B, T), 1 up to the end token.
        is_cut: (B,), True for an answer without an end.
    """

    prompt_ids: Tensor
    prompt_mask: Tensor
    ids: Tensor
    mask: Tensor
    is_cut: Any

    @classmethod
    def of(
        cls, prompt_ids: Tensor, prompt_mask: Tensor, rows: list[list[int]], pad: int, end: int, multiple: int | None
    ) -> Self:
        """Return answers up to their end token, of rows that are padded behind it.

        Args:    pad, end: the ids of the tokens
        """
        kept = [row[: row.index(end) + 1] if end in row else without_padding(row, pad) for row in rows]
        ids, mask = (each.to(prompt_ids.device) for each in right_padded(kept, pad, multiple))
        return cls(prompt_ids, prompt_mask, ids, mask, np.asarray([end not in row for row in kept]))

    def rows(self) -> list[list[int]]:
        """Return the ids of each answer."""
        return [row[: int(count)] for row, count in zip(self.ids.tolist(), self.mask.sum(dim=1).tolist(), strict=True)]


def joined(left: Tensor, right: Tensor) -> Tensor:
    """Return tensors (B, P) and (B, T) as one, (B, P + T)."""
    return apply(cat, [left, right.to(left.dtype)], dim=1)


def without_padding(row: list[int], pad: int) -> list[int]:
    """Return a row without padding at its end."""
    count = len(row)
    while count and row[count - 1] == pad:
        count -= 1
    return row[:count]
