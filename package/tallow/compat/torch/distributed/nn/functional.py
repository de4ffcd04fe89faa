"""torch.distributed.nn.functional: collectives with gradients."""

from tallow.compat.absent import absent

_HINT = "call the collectives of torch.distributed"
all_gather = absent("torch.distributed.nn.functional.all_gather", _HINT)
all_reduce = absent("torch.distributed.nn.functional.all_reduce", _HINT)
all_to_all = absent("torch.distributed.nn.functional.all_to_all", _HINT)
all_to_all_single = absent("torch.distributed.nn.functional.all_to_all_single", _HINT)
broadcast = absent("torch.distributed.nn.functional.broadcast", _HINT)
gather = absent("torch.distributed.nn.functional.gather", _HINT)
reduce = absent("torch.distributed.nn.functional.reduce", _HINT)
reduce_scatter = absent("torch.distributed.nn.functional.reduce_scatter", _HINT)
scatter = absent("torch.distributed.nn.functional.scatter", _HINT)
