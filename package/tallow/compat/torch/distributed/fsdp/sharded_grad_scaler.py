"""torch.distributed.fsdp.sharded_grad_scaler: scale losses for divided parameters."""

from tallow.compat.absent import absent

_HINT = "use torch.amp.GradScaler"
ShardedGradScaler = absent("torch.distributed.fsdp.sharded_grad_scaler.ShardedGradScaler", _HINT)
