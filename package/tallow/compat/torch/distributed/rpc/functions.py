"""torch.distributed.rpc.functions: call functions of other processes."""

from tallow.compat.absent import absent

_HINT = "send tensors by torch.distributed.send and recv"
async_execution = absent("torch.distributed.rpc.functions.async_execution", _HINT)
