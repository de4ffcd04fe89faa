"""torch.distributed.device_mesh: processes in a grid."""

from tallow.compat.absent import absent

__all__ = ["DeviceMesh", "init_device_mesh"]

_HINT = "use DistributedDataParallel, or groups of processes by new_group"
DeviceMesh = absent("torch.distributed.device_mesh.DeviceMesh", _HINT)
init_device_mesh = absent("torch.distributed.device_mesh.init_device_mesh", _HINT)
