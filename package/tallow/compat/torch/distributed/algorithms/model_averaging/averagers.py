"""torch.distributed.algorithms.model_averaging.averagers: means of parameters."""

from tallow.compat.absent import absent

_HINT = "use DistributedDataParallel, or the layers of tallow.nn.parallel"
ModelAverager = absent("torch.distributed.algorithms.model_averaging.averagers.ModelAverager", _HINT)
PeriodicModelAverager = absent("torch.distributed.algorithms.model_averaging.averagers.PeriodicModelAverager", _HINT)
EMAAverager = absent("torch.distributed.algorithms.model_averaging.averagers.EMAAverager", _HINT)
