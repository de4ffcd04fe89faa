"""torch.distributed.optim.zero_redundancy_optimizer: optimizers over several processes."""

from tallow.compat.absent import absent

_HINT = "use DistributedDataParallel with an optimizer of torch.optim"
ZeroRedundancyOptimizer = absent("torch.distributed.optim.zero_redundancy_optimizer.ZeroRedundancyOptimizer", _HINT)
