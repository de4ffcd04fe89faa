"""torch.distributed.checkpoint: checkpoints of divided tensors."""

from tallow.compat.absent import absent

_HINT = "save and load state_dict() of each process with torch.save and torch.load"
FileSystemReader = absent("torch.distributed.checkpoint.FileSystemReader", _HINT)
FileSystemWriter = absent("torch.distributed.checkpoint.FileSystemWriter", _HINT)
StorageReader = absent("torch.distributed.checkpoint.StorageReader", _HINT)
StorageWriter = absent("torch.distributed.checkpoint.StorageWriter", _HINT)
LoadPlanner = absent("torch.distributed.checkpoint.LoadPlanner", _HINT)
SavePlanner = absent("torch.distributed.checkpoint.SavePlanner", _HINT)
DefaultLoadPlanner = absent("torch.distributed.checkpoint.DefaultLoadPlanner", _HINT)
DefaultSavePlanner = absent("torch.distributed.checkpoint.DefaultSavePlanner", _HINT)
Metadata = absent("torch.distributed.checkpoint.Metadata", _HINT)
CheckpointException = absent("torch.distributed.checkpoint.CheckpointException", _HINT)
async_save = absent("torch.distributed.checkpoint.async_save", _HINT)
load = absent("torch.distributed.checkpoint.load", _HINT)
load_state_dict = absent("torch.distributed.checkpoint.load_state_dict", _HINT)
save = absent("torch.distributed.checkpoint.save", _HINT)
save_state_dict = absent("torch.distributed.checkpoint.save_state_dict", _HINT)
