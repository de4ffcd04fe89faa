"""torch.distributed.algorithms.ddp_comm_hooks.post_localSGD_hook: other sums of gradients."""

from tallow.compat.absent import absent

_HINT = "use DistributedDataParallel, or the layers of tallow.nn.parallel"
PostLocalSGDState = absent("torch.distributed.algorithms.ddp_comm_hooks.post_localSGD_hook.PostLocalSGDState", _HINT)
post_localSGD_hook = absent("torch.distributed.algorithms.ddp_comm_hooks.post_localSGD_hook.post_localSGD_hook", _HINT)
