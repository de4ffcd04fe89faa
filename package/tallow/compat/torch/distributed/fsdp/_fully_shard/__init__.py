"""torch.distributed.fsdp._fully_shard: modules whose parameters are divided among processes."""

from tallow.compat.absent import absent

_HINT = "use DistributedDataParallel, or the layers of tallow.nn.parallel"
FSDPModule = absent("torch.distributed.fsdp._fully_shard.FSDPModule", _HINT)
CPUOffloadPolicy = absent("torch.distributed.fsdp._fully_shard.CPUOffloadPolicy", _HINT)
MixedPrecisionPolicy = absent("torch.distributed.fsdp._fully_shard.MixedPrecisionPolicy", _HINT)
OffloadPolicy = absent("torch.distributed.fsdp._fully_shard.OffloadPolicy", _HINT)
fully_shard = absent("torch.distributed.fsdp._fully_shard.fully_shard", _HINT)
