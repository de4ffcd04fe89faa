"""torch.distributed.autograd: backward passes over several processes."""

from tallow.compat.absent import absent

_HINT = "use DistributedDataParallel, or the layers of tallow.nn.parallel"
backward = absent("torch.distributed.autograd.backward", _HINT)
context = absent("torch.distributed.autograd.context", _HINT)
get_gradients = absent("torch.distributed.autograd.get_gradients", _HINT)
