"""torch.distributed.rpc.api: call functions of other processes."""

from tallow.compat.absent import absent

_HINT = "send tensors by torch.distributed.send and recv"
_all_gather = absent("torch.distributed.rpc.api._all_gather", _HINT)
_require_initialized = absent("torch.distributed.rpc.api._require_initialized", _HINT)
_wait_all = absent("torch.distributed.rpc.api._wait_all", _HINT)
get_worker_info = absent("torch.distributed.rpc.api.get_worker_info", _HINT)
remote = absent("torch.distributed.rpc.api.remote", _HINT)
rpc_async = absent("torch.distributed.rpc.api.rpc_async", _HINT)
rpc_sync = absent("torch.distributed.rpc.api.rpc_sync", _HINT)
shutdown = absent("torch.distributed.rpc.api.shutdown", _HINT)
