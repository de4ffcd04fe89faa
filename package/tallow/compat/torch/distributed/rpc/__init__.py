"""torch.distributed.rpc: call functions of other processes."""

from tallow.compat.absent import absent

_HINT = "send tensors by torch.distributed.send and recv"
BackendType = absent("torch.distributed.rpc.BackendType", _HINT)
PyRRef = absent("torch.distributed.rpc.PyRRef", _HINT)
RRef = absent("torch.distributed.rpc.RRef", _HINT)
RemoteModule = absent("torch.distributed.rpc.RemoteModule", _HINT)
RpcBackendOptions = absent("torch.distributed.rpc.RpcBackendOptions", _HINT)
TensorPipeRpcBackendOptions = absent("torch.distributed.rpc.TensorPipeRpcBackendOptions", _HINT)
WorkerInfo = absent("torch.distributed.rpc.WorkerInfo", _HINT)
get_worker_info = absent("torch.distributed.rpc.get_worker_info", _HINT)
init_rpc = absent("torch.distributed.rpc.init_rpc", _HINT)
remote = absent("torch.distributed.rpc.remote", _HINT)
rpc_async = absent("torch.distributed.rpc.rpc_async", _HINT)
rpc_sync = absent("torch.distributed.rpc.rpc_sync", _HINT)
shutdown = absent("torch.distributed.rpc.shutdown", _HINT)


def is_available() -> bool:
    """Return False: functions of other processes cannot be called."""
    return False
