"""torch.distributed.run: start processes."""

from tallow.compat.absent import absent

_HINT = "python -m tallow.distributed.run -n 4 train.py starts processes"
get_args_parser = absent("torch.distributed.run.get_args_parser", _HINT)
main = absent("torch.distributed.run.main", _HINT)
run = absent("torch.distributed.run.run", _HINT)
config_from_args = absent("torch.distributed.run.config_from_args", _HINT)
