"""torch.distributed.fsdp.wrap: which modules FSDP divides."""

from tallow.compat.absent import absent

_HINT = "use DistributedDataParallel, or the layers of tallow.nn.parallel"
ModuleWrapPolicy = absent("torch.distributed.fsdp.wrap.ModuleWrapPolicy", _HINT)
CustomPolicy = absent("torch.distributed.fsdp.wrap.CustomPolicy", _HINT)
_or_policy = absent("torch.distributed.fsdp.wrap._or_policy", _HINT)
_module_wrap_policy = absent("torch.distributed.fsdp.wrap._module_wrap_policy", _HINT)
always_wrap_policy = absent("torch.distributed.fsdp.wrap.always_wrap_policy", _HINT)
enable_wrap = absent("torch.distributed.fsdp.wrap.enable_wrap", _HINT)
lambda_auto_wrap_policy = absent("torch.distributed.fsdp.wrap.lambda_auto_wrap_policy", _HINT)
size_based_auto_wrap_policy = absent("torch.distributed.fsdp.wrap.size_based_auto_wrap_policy", _HINT)
transformer_auto_wrap_policy = absent("torch.distributed.fsdp.wrap.transformer_auto_wrap_policy", _HINT)
wrap = absent("torch.distributed.fsdp.wrap.wrap", _HINT)
