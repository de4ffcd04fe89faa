"""torch.distributed.tensor.parallel: modules that are divided among processes."""

from tallow.compat.absent import absent

_HINT = "use ColumnParallelLinear and RowParallelLinear of tallow.nn.parallel"
ParallelStyle = absent("torch.distributed.tensor.parallel.ParallelStyle", _HINT)
ColwiseParallel = absent("torch.distributed.tensor.parallel.ColwiseParallel", _HINT)
RowwiseParallel = absent("torch.distributed.tensor.parallel.RowwiseParallel", _HINT)
SequenceParallel = absent("torch.distributed.tensor.parallel.SequenceParallel", _HINT)
PrepareModuleInput = absent("torch.distributed.tensor.parallel.PrepareModuleInput", _HINT)
PrepareModuleOutput = absent("torch.distributed.tensor.parallel.PrepareModuleOutput", _HINT)
parallelize_module = absent("torch.distributed.tensor.parallel.parallelize_module", _HINT)
loss_parallel = absent("torch.distributed.tensor.parallel.loss_parallel", _HINT)
