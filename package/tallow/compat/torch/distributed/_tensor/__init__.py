"""torch.distributed._tensor: the former name of torch.distributed.tensor."""

from tallow.compat.absent import absent

_HINT = "use DistributedDataParallel, or the layers of tallow.nn.parallel"
DTensor = absent("torch.distributed._tensor.DTensor", _HINT)
Shard = absent("torch.distributed._tensor.Shard", _HINT)
Replicate = absent("torch.distributed._tensor.Replicate", _HINT)
Partial = absent("torch.distributed._tensor.Partial", _HINT)
distribute_tensor = absent("torch.distributed._tensor.distribute_tensor", _HINT)
distribute_module = absent("torch.distributed._tensor.distribute_module", _HINT)
