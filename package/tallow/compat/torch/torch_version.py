"""torch.torch_version: the class of `torch.__version__`."""

from tallow.compat.version import TorchVersion, __version__

__all__ = ["TorchVersion", "__version__"]
