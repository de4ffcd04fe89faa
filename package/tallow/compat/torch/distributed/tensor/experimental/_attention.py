"""torch.distributed.tensor.experimental._attention: attention over divided sequences."""

from tallow.compat.absent import absent

_HINT = "use DistributedDataParallel, or the layers of tallow.nn.parallel"
set_rotate_method = absent("torch.distributed.tensor.experimental._attention.set_rotate_method", _HINT)
