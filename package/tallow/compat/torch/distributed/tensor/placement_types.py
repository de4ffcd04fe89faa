"""torch.distributed.tensor.placement_types: how tensors are divided."""

from tallow.compat.absent import absent

_HINT = "use DistributedDataParallel, or the layers of tallow.nn.parallel"
Placement = absent("torch.distributed.tensor.placement_types.Placement", _HINT)
Shard = absent("torch.distributed.tensor.placement_types.Shard", _HINT)
Replicate = absent("torch.distributed.tensor.placement_types.Replicate", _HINT)
Partial = absent("torch.distributed.tensor.placement_types.Partial", _HINT)
_StridedShard = absent("torch.distributed.tensor.placement_types._StridedShard", _HINT)
_MaskPartial = absent("torch.distributed.tensor.placement_types._MaskPartial", _HINT)
DTensorSpec = absent("torch.distributed.tensor.placement_types.DTensorSpec", _HINT)
