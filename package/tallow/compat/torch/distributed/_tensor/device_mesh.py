"""torch.distributed._tensor.device_mesh: the former name of torch.distributed.device_mesh."""

from tallow.compat.absent import absent

_HINT = "use DistributedDataParallel, or the layers of tallow.nn.parallel"
DeviceMesh = absent("torch.distributed._tensor.device_mesh.DeviceMesh", _HINT)
init_device_mesh = absent("torch.distributed._tensor.device_mesh.init_device_mesh", _HINT)
