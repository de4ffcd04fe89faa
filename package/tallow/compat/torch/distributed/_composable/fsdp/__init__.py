"""torch.distributed._composable.fsdp: modules whose parameters are divided among processes."""

from tallow.compat.absent import absent

_HINT = "use DistributedDataParallel, or the layers of tallow.nn.parallel"
FSDPModule = absent("torch.distributed._composable.fsdp.FSDPModule", _HINT)
CPUOffloadPolicy = absent("torch.distributed._composable.fsdp.CPUOffloadPolicy", _HINT)
MixedPrecisionPolicy = absent("torch.distributed._composable.fsdp.MixedPrecisionPolicy", _HINT)
OffloadPolicy = absent("torch.distributed._composable.fsdp.OffloadPolicy", _HINT)
fully_shard = absent("torch.distributed._composable.fsdp.fully_shard", _HINT)
register_fsdp_forward_method = absent("torch.distributed._composable.fsdp.register_fsdp_forward_method", _HINT)
UnshardHandle = absent("torch.distributed._composable.fsdp.UnshardHandle", _HINT)
