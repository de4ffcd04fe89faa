"""torch.distributed._functional_collectives: collectives that return new tensors."""

from tallow.compat.absent import absent

_HINT = "call the collectives of torch.distributed, which write into a tensor"
AsyncCollectiveTensor = absent("torch.distributed._functional_collectives.AsyncCollectiveTensor", _HINT)
all_gather_tensor = absent("torch.distributed._functional_collectives.all_gather_tensor", _HINT)
all_gather_tensor_autograd = absent("torch.distributed._functional_collectives.all_gather_tensor_autograd", _HINT)
all_reduce = absent("torch.distributed._functional_collectives.all_reduce", _HINT)
all_to_all_single = absent("torch.distributed._functional_collectives.all_to_all_single", _HINT)
all_to_all_single_autograd = absent("torch.distributed._functional_collectives.all_to_all_single_autograd", _HINT)
broadcast = absent("torch.distributed._functional_collectives.broadcast", _HINT)
permute_tensor = absent("torch.distributed._functional_collectives.permute_tensor", _HINT)
reduce_scatter_tensor = absent("torch.distributed._functional_collectives.reduce_scatter_tensor", _HINT)
reduce_scatter_tensor_autograd = absent(
    "torch.distributed._functional_collectives.reduce_scatter_tensor_autograd", _HINT
)
wait_tensor = absent("torch.distributed._functional_collectives.wait_tensor", _HINT)
