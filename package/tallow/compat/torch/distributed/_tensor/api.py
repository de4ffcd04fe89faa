"""torch.distributed._tensor.api: the former name of torch.distributed.tensor."""

from tallow.compat.absent import absent

_HINT = "use DistributedDataParallel, or the layers of tallow.nn.parallel"
DTensor = absent("torch.distributed._tensor.api.DTensor", _HINT)
