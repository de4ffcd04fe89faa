"""torch.distributed.checkpoint._consolidate_hf_safetensors: checkpoints of divided tensors."""

from tallow.compat.absent import absent

_HINT = "save and load state_dict() of each process with torch.save and torch.load"
consolidate_safetensors_files = absent(
    "torch.distributed.checkpoint._consolidate_hf_safetensors.consolidate_safetensors_files", _HINT
)
