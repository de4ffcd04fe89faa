"""torch.distributed.checkpoint.stateful: checkpoints of divided tensors."""

from tallow.compat.absent import absent

_HINT = "save and load state_dict() of each process with torch.save and torch.load"
Stateful = absent("torch.distributed.checkpoint.stateful.Stateful", _HINT)
