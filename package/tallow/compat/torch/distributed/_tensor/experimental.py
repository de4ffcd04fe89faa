"""torch.distributed._tensor.experimental: the former name of torch.distributed.tensor.experimental."""

from tallow.compat.absent import absent

_HINT = "use DistributedDataParallel, or the layers of tallow.nn.parallel"
implicit_replication = absent("torch.distributed._tensor.experimental.implicit_replication", _HINT)
