"""Layers of which each process of a group has a part, so that a model need not fit into one.

They are made of the sizes of the whole; `sharded` says along which axis a parameter is divided, and `share` which part
this process has. A column-parallel layer feeds a row-parallel one, with one sum over the group at the end:

    x -> ColumnParallelLinear -> the ranks' features, each by itself -> RowParallelLinear -> y

Source:  Shoeybi et al. 2019, arXiv:1909.08053, section 3
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from tallow.distributed import ProcessGroup
from tallow.distributed.groups import member
from tallow.nn import functional as F
from tallow.nn.embedding import Embedding
from tallow.nn.linear import Linear
from tallow.nn.parallel.regions import Share, copy_to_group, gather_from_group, reduce_from_group
from tallow.tensor import Tensor


class ColumnParallelLinear(Linear):
    """A Linear of which each rank computes its part of the output features.

    Args:    as Linear, of the whole; gather_output: give every rank all features; group: None means all processes
    Shapes:  x (..., in_features), the same in all ranks -> (..., share.size), or (..., out_features) if gathered;
             weight (share.size, in_features);  bias (share.size)
    """

    sharded: ClassVar[Mapping[str, int]] = {"weight": 0, "bias": 0}

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        gather_output: bool = False,
        group: ProcessGroup | None = None,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        self.group = member(group)
        self.share = Share(out_features, self.group)
        self.gather_output = gather_output
        super().__init__(in_features, self.share.size, bias, device, dtype)

    def forward(self, input: Tensor) -> Tensor:
        y = F.linear(copy_to_group(input, self.group), self.weight, self.bias)
        return gather_from_group(y, self.share, self.group) if self.gather_output else y


class RowParallelLinear(Linear):
    """A Linear of which each rank multiplies its part of the input features; the sum of all is the output.

    Args:    as Linear, of the whole; group: None means all processes
    Shapes:  x (..., share.size), each rank's own part -> (..., out_features), the same in all ranks;
             weight (out_features, share.size);  bias (out_features)
    """

    sharded: ClassVar[Mapping[str, int]] = {"weight": 1}

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        group: ProcessGroup | None = None,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        self.group = member(group)
        self.share = Share(in_features, self.group)
        super().__init__(self.share.size, out_features, bias, device, dtype)

    def forward(self, input: Tensor) -> Tensor:
        y = reduce_from_group(F.linear(input, self.weight), self.group)
        return y if self.bias is None else y + self.bias


class VocabParallelEmbedding(Embedding):
    """An Embedding of which each rank has its part of the rows.

    Args:    num_embeddings, embedding_dim as Embedding, of the whole; group: None means all processes
    Shapes:  input (*) of integers, the same in all ranks -> (*, embedding_dim);  weight (share.size, embedding_dim)
    """

    sharded: ClassVar[Mapping[str, int]] = {"weight": 0}

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        group: ProcessGroup | None = None,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        self.group = member(group)
        self.share = Share(num_embeddings, self.group)
        super().__init__(self.share.size, embedding_dim, device=device, dtype=dtype)

    def forward(self, input: Tensor) -> Tensor:
        mine = (input >= self.share.start) & (input < self.share.stop)
        nobodys = (input < 0) | (input >= self.share.total)  # beyond every rank's rows: the look-up refuses it
        index = (input - self.share.start) * mine + self.share.size * nobodys
        rows = F.embedding(index, self.weight)  # type: ignore[operator]  # mypy sees the module
        return reduce_from_group(rows * mine.unsqueeze(-1).to(rows.dtype), self.group)
