"""torch.distributed.algorithms.ddp_comm_hooks: other sums of gradients."""

from tallow.compat.absent import absent

_HINT = "use DistributedDataParallel, or the layers of tallow.nn.parallel"
DDPCommHookType = absent("torch.distributed.algorithms.ddp_comm_hooks.DDPCommHookType", _HINT)
register_ddp_comm_hook = absent("torch.distributed.algorithms.ddp_comm_hooks.register_ddp_comm_hook", _HINT)
