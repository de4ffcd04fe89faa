"""torch.distributed.algorithms.ddp_comm_hooks.powerSGD_hook: other sums of gradients."""

from tallow.compat.absent import absent

_HINT = "use DistributedDataParallel, or the layers of tallow.nn.parallel"
PowerSGDState = absent("torch.distributed.algorithms.ddp_comm_hooks.powerSGD_hook.PowerSGDState", _HINT)
powerSGD_hook = absent("torch.distributed.algorithms.ddp_comm_hooks.powerSGD_hook.powerSGD_hook", _HINT)
batched_powerSGD_hook = absent("torch.distributed.algorithms.ddp_comm_hooks.powerSGD_hook.batched_powerSGD_hook", _HINT)
