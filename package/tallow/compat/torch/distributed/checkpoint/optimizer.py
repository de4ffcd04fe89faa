"""torch.distributed.checkpoint.optimizer: checkpoints of divided tensors."""

from tallow.compat.absent import absent

_HINT = "save and load state_dict() of each process with torch.save and torch.load"
load_sharded_optimizer_state_dict = absent(
    "torch.distributed.checkpoint.optimizer.load_sharded_optimizer_state_dict", _HINT
)
