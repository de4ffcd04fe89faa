"""torch.distributed.checkpoint.state_dict_loader: checkpoints of divided tensors."""

from tallow.compat.absent import absent

_HINT = "save and load state_dict() of each process with torch.save and torch.load"
load = absent("torch.distributed.checkpoint.state_dict_loader.load", _HINT)
load_state_dict = absent("torch.distributed.checkpoint.state_dict_loader.load_state_dict", _HINT)
_load_state_dict = absent("torch.distributed.checkpoint.state_dict_loader._load_state_dict", _HINT)
