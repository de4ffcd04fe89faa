"""Tensor-parallel layers: each process of a group holds a part, so that a model larger than one process's memory fits.

Constructors take the sizes of the whole layer. `sharded` maps a parameter to the dimension that is divided; `share` is
the part of this process. A column-parallel layer feeds a row-parallel layer, with one sum over the group at the end:

    x -> ColumnParallelLinear -> each rank's features -> RowParallelLinear -> y

Source:  Shoeybi et al. 2019, arXiv:1909.08053, section 3
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from tallow.core.tensor import Tensor
from tallow.distributed import ProcessGroup
from tallow.distributed.groups import member
from tallow.nn import functional as F
from tallow.nn.embedding import Embedding
from tallow.nn.linear import Linear
from tallow.nn.parallel.regions import Share, copy_to_group, gather_from_group, reduce_from_group


class ColumnParallelLinear(Linear):
    """A Linear whose output features are divided among the ranks.

    Args:    as Linear, for the whole layer; gather_output: return all features in every rank; group: None means all
             processes
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
    """A Linear whose input features are divided among the ranks; the output is the sum over the ranks.

    Args:    as Linear, for the whole layer; group: None means all processes
    Shapes:  x (..., share.size), the rank's part -> (..., out_features), the same in all ranks;
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
    """An Embedding whose rows are divided among the ranks.

    Args:    num_embeddings, embedding_dim as Embedding, for the whole table; group: None means all processes
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
        is_local = (input >= self.share.start) & (input < self.share.stop)
        is_invalid = (input < 0) | (input >= self.share.total)
        # Indices of other ranks look up row 0, which is zeroed below; invalid ones stay out of range and raise.
        index = (input - self.share.start) * is_local + self.share.size * is_invalid
        rows = F.embedding(index, self.weight)
        return reduce_from_group(rows * is_local.unsqueeze(-1).to(rows.dtype), self.group)
