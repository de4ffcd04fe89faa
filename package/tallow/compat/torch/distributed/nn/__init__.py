"""torch.distributed.nn: collectives with gradients."""

from tallow.compat.absent import absent

_HINT = "call the collectives of torch.distributed"
RemoteModule = absent("torch.distributed.nn.RemoteModule", _HINT)
all_gather = absent("torch.distributed.nn.all_gather", _HINT)
all_reduce = absent("torch.distributed.nn.all_reduce", _HINT)
all_to_all = absent("torch.distributed.nn.all_to_all", _HINT)
broadcast = absent("torch.distributed.nn.broadcast", _HINT)
gather = absent("torch.distributed.nn.gather", _HINT)
reduce = absent("torch.distributed.nn.reduce", _HINT)
reduce_scatter = absent("torch.distributed.nn.reduce_scatter", _HINT)
scatter = absent("torch.distributed.nn.scatter", _HINT)
