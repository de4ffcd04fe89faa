"""torch.distributed.checkpoint.state_dict_saver: checkpoints of divided tensors."""

from tallow.compat.absent import absent

_HINT = "save and load state_dict() of each process with torch.save and torch.load"
save = absent("torch.distributed.checkpoint.state_dict_saver.save", _HINT)
save_state_dict = absent("torch.distributed.checkpoint.state_dict_saver.save_state_dict", _HINT)
async_save = absent("torch.distributed.checkpoint.state_dict_saver.async_save", _HINT)
