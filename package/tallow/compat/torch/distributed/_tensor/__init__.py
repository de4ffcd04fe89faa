"""torch.distributed._tensor: the former name of torch.distributed.tensor."""

from tallow.compat.absent import absent
from tallow.compat.torch.distributed.tensor.placement_types import Partial as Partial
from tallow.compat.torch.distributed.tensor.placement_types import Replicate as Replicate
from tallow.compat.torch.distributed.tensor.placement_types import Shard as Shard

_HINT = "use DistributedDataParallel, or the layers of tallow.nn.parallel"
DTensor = absent("torch.distributed._tensor.DTensor", _HINT)
distribute_tensor = absent("torch.distributed._tensor.distribute_tensor", _HINT)
distribute_module = absent("torch.distributed._tensor.distribute_module", _HINT)
