"""The names of `torch._C`, PyTorch's extension module, that programs use."""

from tallow.errors import LinAlgError as _LinAlgError  # noqa: F401 - the stand-in reads it
