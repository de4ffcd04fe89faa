"""torch.distributed.checkpoint.metadata: checkpoints of divided tensors."""

from tallow.compat.absent import absent

_HINT = "save and load state_dict() of each process with torch.save and torch.load"
Metadata = absent("torch.distributed.checkpoint.metadata.Metadata", _HINT)
TensorStorageMetadata = absent("torch.distributed.checkpoint.metadata.TensorStorageMetadata", _HINT)
BytesStorageMetadata = absent("torch.distributed.checkpoint.metadata.BytesStorageMetadata", _HINT)
STATE_DICT_TYPE = absent("torch.distributed.checkpoint.metadata.STATE_DICT_TYPE", _HINT)
