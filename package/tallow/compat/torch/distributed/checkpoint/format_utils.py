"""torch.distributed.checkpoint.format_utils: checkpoints of divided tensors."""

from tallow.compat.absent import absent

_HINT = "save and load state_dict() of each process with torch.save and torch.load"
_EmptyStateDictLoadPlanner = absent("torch.distributed.checkpoint.format_utils._EmptyStateDictLoadPlanner", _HINT)
_load_state_dict = absent("torch.distributed.checkpoint.format_utils._load_state_dict", _HINT)
dcp_to_torch_save = absent("torch.distributed.checkpoint.format_utils.dcp_to_torch_save", _HINT)
torch_save_to_dcp = absent("torch.distributed.checkpoint.format_utils.torch_save_to_dcp", _HINT)
