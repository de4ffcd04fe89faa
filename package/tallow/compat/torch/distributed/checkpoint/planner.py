"""torch.distributed.checkpoint.planner: checkpoints of divided tensors."""

from tallow.compat.absent import absent

_HINT = "save and load state_dict() of each process with torch.save and torch.load"
LoadPlanner = absent("torch.distributed.checkpoint.planner.LoadPlanner", _HINT)
SavePlanner = absent("torch.distributed.checkpoint.planner.SavePlanner", _HINT)
LoadPlan = absent("torch.distributed.checkpoint.planner.LoadPlan", _HINT)
SavePlan = absent("torch.distributed.checkpoint.planner.SavePlan", _HINT)
