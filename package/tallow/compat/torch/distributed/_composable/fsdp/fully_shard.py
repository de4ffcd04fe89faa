"""torch.distributed._composable.fsdp.fully_shard: modules whose parameters are divided among processes."""

from tallow.compat.absent import absent

_HINT = "use DistributedDataParallel, or the layers of tallow.nn.parallel"
FSDPModule = absent("torch.distributed._composable.fsdp.fully_shard.FSDPModule", _HINT)
fully_shard = absent("torch.distributed._composable.fsdp.fully_shard.fully_shard", _HINT)
