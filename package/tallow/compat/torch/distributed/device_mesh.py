"""torch.distributed.device_mesh: processes in a grid."""

from tallow.distributed.subgroups import DeviceMesh, init_device_mesh

__all__ = ["DeviceMesh", "init_device_mesh"]
