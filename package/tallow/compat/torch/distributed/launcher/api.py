"""torch.distributed.launcher.api: start processes."""

from tallow.compat.absent import absent

_HINT = "python -m tallow.distributed.run -n 4 train.py starts processes"
LaunchConfig = absent("torch.distributed.launcher.api.LaunchConfig", _HINT)
elastic_launch = absent("torch.distributed.launcher.api.elastic_launch", _HINT)
