"""torch.distributed.algorithms.join: processes with different numbers of batches."""

from tallow.compat.absent import absent

_HINT = "give each process as many batches"
Join = absent("torch.distributed.algorithms.join.Join", _HINT)
Joinable = absent("torch.distributed.algorithms.join.Joinable", _HINT)
JoinHook = absent("torch.distributed.algorithms.join.JoinHook", _HINT)
