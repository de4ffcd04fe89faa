"""torch.distributed.algorithms.ddp_comm_hooks.default_hooks: other sums of gradients."""

from tallow.compat.absent import absent

_HINT = "use DistributedDataParallel, or the layers of tallow.nn.parallel"
allreduce_hook = absent("torch.distributed.algorithms.ddp_comm_hooks.default_hooks.allreduce_hook", _HINT)
fp16_compress_hook = absent("torch.distributed.algorithms.ddp_comm_hooks.default_hooks.fp16_compress_hook", _HINT)
bf16_compress_hook = absent("torch.distributed.algorithms.ddp_comm_hooks.default_hooks.bf16_compress_hook", _HINT)
fp16_compress_wrapper = absent("torch.distributed.algorithms.ddp_comm_hooks.default_hooks.fp16_compress_wrapper", _HINT)
bf16_compress_wrapper = absent("torch.distributed.algorithms.ddp_comm_hooks.default_hooks.bf16_compress_wrapper", _HINT)
