"""Layers that look up vectors by index."""

from __future__ import annotations

from typing import Any

from tallow.errors import ArgumentError
from tallow.nn import functional as F
from tallow.nn import init
from tallow.nn.module import Module
from tallow.nn.parameter import empty_parameter
from tallow.tensor import Tensor


class Embedding(Module):
    """A table of vectors, looked up by index.

    Args:    as torch.nn.Embedding; padding_idx: a row that starts as zero and gets no gradient
    Shapes:  input (*) of integers -> (*, embedding_dim);  weight (num_embeddings, embedding_dim)
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        if padding_idx is not None and not -num_embeddings <= padding_idx < num_embeddings:
            raise ArgumentError(f"padding_idx={padding_idx} lies outside the {num_embeddings} embeddings")
        self.num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        self.padding_idx = None if padding_idx is None else padding_idx % num_embeddings
        self.weight = empty_parameter(num_embeddings, embedding_dim, device=device, dtype=dtype)
        if self.weight.device.type != "meta":
            self.reset_parameters()

    def reset_parameters(self) -> None:
        init.normal_(self.weight)
        if self.padding_idx is not None:
            self.weight.array[self.padding_idx] = 0

    def forward(self, input: Tensor) -> Tensor:
        return F.embedding(input, self.weight, self.padding_idx)  # type: ignore[operator]  # mypy sees the module

    def extra_repr(self) -> str:
        padding = "" if self.padding_idx is None else f", padding_idx={self.padding_idx}"
        return f"{self.num_embeddings}, {self.embedding_dim}{padding}"
