"""torch.utils.tensorboard.writer: the file of PyTorch that has the names of torch.utils.tensorboard."""

from tallow.compat.torch.utils.tensorboard import __all__ as __all__
from tallow.compat.torch.utils.tensorboard import __dir__ as __dir__
from tallow.compat.torch.utils.tensorboard import __getattr__ as __getattr__
