"""torch.distributed.checkpoint.filesystem: checkpoints of divided tensors."""

from tallow.compat.absent import absent

_HINT = "save and load state_dict() of each process with torch.save and torch.load"
FileSystemReader = absent("torch.distributed.checkpoint.filesystem.FileSystemReader", _HINT)
FileSystemWriter = absent("torch.distributed.checkpoint.filesystem.FileSystemWriter", _HINT)
