"""torch.distributed.launcher: start processes."""

from tallow.compat.absent import absent

_HINT = "python -m tallow.distributed.run -n 4 train.py starts processes"
LaunchConfig = absent("torch.distributed.launcher.LaunchConfig", _HINT)
elastic_launch = absent("torch.distributed.launcher.elastic_launch", _HINT)
launch_agent = absent("torch.distributed.launcher.launch_agent", _HINT)
