"""torch.distributed.optim: optimizers over several processes."""

from tallow.compat.absent import absent

_HINT = "use DistributedDataParallel with an optimizer of torch.optim"
DistributedOptimizer = absent("torch.distributed.optim.DistributedOptimizer", _HINT)
PostLocalSGDOptimizer = absent("torch.distributed.optim.PostLocalSGDOptimizer", _HINT)
ZeroRedundancyOptimizer = absent("torch.distributed.optim.ZeroRedundancyOptimizer", _HINT)
