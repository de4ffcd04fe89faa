"""torch.distributed.checkpoint.default_planner: checkpoints of divided tensors."""

from tallow.compat.absent import absent

_HINT = "save and load state_dict() of each process with torch.save and torch.load"
DefaultLoadPlanner = absent("torch.distributed.checkpoint.default_planner.DefaultLoadPlanner", _HINT)
DefaultSavePlanner = absent("torch.distributed.checkpoint.default_planner.DefaultSavePlanner", _HINT)
_EmptyStateDictLoadPlanner = absent("torch.distributed.checkpoint.default_planner._EmptyStateDictLoadPlanner", _HINT)
