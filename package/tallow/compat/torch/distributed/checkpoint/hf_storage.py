"""torch.distributed.checkpoint.hf_storage: checkpoints of divided tensors."""

from tallow.compat.absent import absent

_HINT = "save and load state_dict() of each process with torch.save and torch.load"
HuggingFaceStorageReader = absent("torch.distributed.checkpoint.hf_storage.HuggingFaceStorageReader", _HINT)
HuggingFaceStorageWriter = absent("torch.distributed.checkpoint.hf_storage.HuggingFaceStorageWriter", _HINT)
