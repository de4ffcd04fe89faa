"""torch.distributed.tensor.placement_types: how tensors are divided among processes.

Plans of models name placements when they are imported; a tensor that is divided by one raises.
"""

from __future__ import annotations

from dataclasses import dataclass

from tallow.compat.absent import absent

__all__ = ["DTensorSpec", "Partial", "Placement", "Replicate", "Shard"]

DTensorSpec = absent("torch.distributed.tensor.placement_types.DTensorSpec", "tensors are whole in each process")


class Placement:
    """The place of a tensor among the processes along a dim of a mesh."""

    def is_shard(self, dim: int | None = None) -> bool:
        """Return whether the tensor is divided, along this dim if one is given."""
        return isinstance(self, Shard) and dim in (None, self.dim)

    def is_replicate(self) -> bool:
        """Return whether each process has the whole tensor."""
        return isinstance(self, Replicate)

    def is_partial(self, reduce_op: str | None = None) -> bool:
        """Return whether the processes have parts of a sum, or of another reduction."""
        return isinstance(self, Partial) and reduce_op in (None, self.reduce_op)


@dataclass(frozen=True)
class Replicate(Placement):
    """The whole tensor in each process."""


@dataclass(frozen=True)
class Shard(Placement):
    """A tensor that is divided along a dim."""

    dim: int


@dataclass(frozen=True)
class _StridedShard(Shard):
    """A tensor that is divided along a dim in turns."""

    split_factor: int = 1


@dataclass(frozen=True)
class Partial(Placement):
    """Parts of a reduction, which is not done yet."""

    reduce_op: str = "sum"
