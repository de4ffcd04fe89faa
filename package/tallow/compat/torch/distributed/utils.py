"""torch.distributed.utils: parts of data parallel training."""

from tallow.compat.absent import absent

_HINT = "use DistributedDataParallel, or the layers of tallow.nn.parallel"
_sync_module_states = absent("torch.distributed.utils._sync_module_states", _HINT)
_verify_param_shape_across_processes = absent("torch.distributed.utils._verify_param_shape_across_processes", _HINT)
