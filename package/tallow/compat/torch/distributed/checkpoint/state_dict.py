"""torch.distributed.checkpoint.state_dict: checkpoints of divided tensors."""

from tallow.compat.absent import absent

_HINT = "save and load state_dict() of each process with torch.save and torch.load"
StateDictOptions = absent("torch.distributed.checkpoint.state_dict.StateDictOptions", _HINT)
get_model_state_dict = absent("torch.distributed.checkpoint.state_dict.get_model_state_dict", _HINT)
get_optimizer_state_dict = absent("torch.distributed.checkpoint.state_dict.get_optimizer_state_dict", _HINT)
get_state_dict = absent("torch.distributed.checkpoint.state_dict.get_state_dict", _HINT)
set_model_state_dict = absent("torch.distributed.checkpoint.state_dict.set_model_state_dict", _HINT)
set_optimizer_state_dict = absent("torch.distributed.checkpoint.state_dict.set_optimizer_state_dict", _HINT)
set_state_dict = absent("torch.distributed.checkpoint.state_dict.set_state_dict", _HINT)
_init_optim_state = absent("torch.distributed.checkpoint.state_dict._init_optim_state", _HINT)
