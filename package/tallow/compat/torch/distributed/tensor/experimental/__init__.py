"""torch.distributed.tensor.experimental: attention over divided sequences."""

from tallow.compat.absent import absent

_HINT = "use DistributedDataParallel, or the layers of tallow.nn.parallel"
context_parallel = absent("torch.distributed.tensor.experimental.context_parallel", _HINT)
implicit_replication = absent("torch.distributed.tensor.experimental.implicit_replication", _HINT)
local_map = absent("torch.distributed.tensor.experimental.local_map", _HINT)
register_sharding = absent("torch.distributed.tensor.experimental.register_sharding", _HINT)
