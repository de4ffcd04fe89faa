"""torch.distributed.tensor: tensors that are divided among processes."""

from tallow.compat.absent import absent
from tallow.compat.torch.distributed.tensor.placement_types import Partial as Partial
from tallow.compat.torch.distributed.tensor.placement_types import Placement as Placement
from tallow.compat.torch.distributed.tensor.placement_types import Replicate as Replicate
from tallow.compat.torch.distributed.tensor.placement_types import Shard as Shard
from tallow.distributed import DeviceMesh as DeviceMesh
from tallow.distributed import init_device_mesh as init_device_mesh

_HINT = "use DistributedDataParallel, or the layers of tallow.nn.parallel"
DTensor = absent("torch.distributed.tensor.DTensor", _HINT)
distribute_tensor = absent("torch.distributed.tensor.distribute_tensor", _HINT)
distribute_module = absent("torch.distributed.tensor.distribute_module", _HINT)
empty = absent("torch.distributed.tensor.empty", _HINT)
full = absent("torch.distributed.tensor.full", _HINT)
ones = absent("torch.distributed.tensor.ones", _HINT)
rand = absent("torch.distributed.tensor.rand", _HINT)
randn = absent("torch.distributed.tensor.randn", _HINT)
zeros = absent("torch.distributed.tensor.zeros", _HINT)
