"""torch.distributed.tensor._utils: how tensors are divided."""

from tallow.compat.absent import absent

_HINT = "use DistributedDataParallel, or the layers of tallow.nn.parallel"
compute_local_shape_and_global_offset = absent(
    "torch.distributed.tensor._utils.compute_local_shape_and_global_offset", _HINT
)
compute_global_tensor_info = absent("torch.distributed.tensor._utils.compute_global_tensor_info", _HINT)
compute_local_shape = absent("torch.distributed.tensor._utils.compute_local_shape", _HINT)
