"""torch.utils.tensorboard: write what TensorBoard shows, by the package tensorboardX."""

from __future__ import annotations

from typing import Any

from tallow.errors import MissingPackageError

__all__ = ["FileWriter", "RecordWriter", "SummaryWriter"]


def __getattr__(name: str) -> Any:
    """Return a class of tensorboardX. Raises: MissingPackageError without the package."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        import tensorboardX  # optional
    except ImportError as error:
        raise MissingPackageError("tensorboardX", f"torch.utils.tensorboard.{name}", "tensorboard") from error
    return getattr(tensorboardX, name)


def __dir__() -> list[str]:
    return list(__all__)
