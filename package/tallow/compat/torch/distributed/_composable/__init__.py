"""torch.distributed._composable: modules that are divided among processes."""

from tallow.compat.absent import absent

_HINT = "use DistributedDataParallel, or the layers of tallow.nn.parallel"
checkpoint = absent("torch.distributed._composable.checkpoint", _HINT)
replicate = absent("torch.distributed._composable.replicate", _HINT)
fully_shard = absent("torch.distributed._composable.fully_shard", _HINT)
