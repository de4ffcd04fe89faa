"""Every error tallow raises on purpose.

Each derives from `TallowError` and from the built-in that PyTorch raises in the same place, so that `except` clauses of
ported code keep working:

    TallowError
    ├── ShapeError          RuntimeError      shapes do not fit each other or the op
    ├── DtypeError          RuntimeError      a dtype that the op does not take, or two that do not mix
    ├── DeviceError         RuntimeError      tensors on two devices, or a device that is not there
    ├── GraphError          RuntimeError      misuse of autograd: freed graph, stale saved value, ...
    ├── NumericError        RuntimeError      NaN or infinity where a number is needed
    ├── LinAlgError         RuntimeError      a matrix without the inverse, factor or values asked for
    ├── OutOfMemoryError    RuntimeError      an array that finds no room; a MemoryError as well
    ├── DimensionError      IndexError        a dim or an index out of range
    ├── ArgumentError       ValueError        any other argument that makes no sense; a RuntimeError as well
    ├── ArgumentTypeError   TypeError         an argument of the wrong type
    ├── UnsupportedError    NotImplementedError  an argument that asks for what tallow does not have
    ├── MissingNameError    AttributeError    a name of PyTorch's that tallow does not have
    ├── MissingModuleError  ModuleNotFoundError  a module of PyTorch's that tallow does not have
    ├── MissingPackageError ImportError       a package of an extra that is not installed
    ├── KernelUnavailable   RuntimeError      no kernel takes these arguments
    ├── WorkerError         RuntimeError      a worker process that died, or took too long
    ├── DistributedError    RuntimeError      processes that compute together, and one that is gone or does not answer
    ├── DatasetError        RuntimeError      data that is missing, truncated or malformed; a ValueError as well
    ├── AudioError          RuntimeError      sound that is damaged or in no known format; a ValueError as well
    ├── HubError            OSError           a model that is neither on this machine nor to be had from the Hub
    ├── CheckpointError     RuntimeError      a file that is truncated, malformed or does not fit; a ValueError as well
    └── TokenizerError      ValueError        a tokenizer file, or a text, that cannot be used
"""

from __future__ import annotations

from tallow.installing import command


class TallowError(Exception):
    """Base of all of tallow's errors.

    Args:
        message: what was wrong, and where.
        mend: what to do about it; printed on a line of its own.
    """

    def __init__(self, message: str, mend: str | None = None) -> None:
        super().__init__(message if mend is None else f"{message}\n  mend: {mend}")
        self.mend = mend


class ShapeError(TallowError, RuntimeError):
    """Shapes do not fit each other or the op."""


class DtypeError(TallowError, RuntimeError):
    """A dtype that the op does not take, or two that do not mix."""


class DeviceError(TallowError, RuntimeError):
    """Tensors on two devices, or a device that is not there."""


class GraphError(TallowError, RuntimeError):
    """Misuse of autograd, a freed graph, a stale saved value, a gradient that does not exist; or of a CUDA graph."""


class NumericError(TallowError, RuntimeError):
    """NaN or infinity where a number is needed."""


class LinAlgError(TallowError, RuntimeError):
    """A matrix that does not have the inverse, the factor or the values asked for."""


class OutOfMemoryError(TallowError, RuntimeError, MemoryError):
    """An array that finds no room in memory."""


class DimensionError(TallowError, IndexError):
    """A dim or an index out of range."""


class ArgumentError(TallowError, ValueError, RuntimeError):
    """An argument whose value makes no sense. PyTorch raises ValueError from its Python, RuntimeError from its C++."""


class ArgumentTypeError(TallowError, TypeError):
    """An argument of the wrong type."""


class UnsupportedError(TallowError, NotImplementedError):
    """An argument of PyTorch's, or of Keras', that asks for what tallow does not have. A RuntimeError as well."""


class MissingNameError(TallowError, AttributeError):
    """A name of PyTorch's that tallow does not have."""


class MissingModuleError(TallowError, ModuleNotFoundError):
    """A module of PyTorch's that tallow does not have."""


class MissingPackageError(TallowError, ImportError):
    """A package of an extra that is not installed. The hint is the command that installs the extra's packages.

    Args:
        package: as it is imported.
        what: what needs it.
        extra: of tallow, that brings it.
    """

    def __init__(self, package: str, what: str, extra: str) -> None:
        super().__init__(f"{what} needs the package {package}", mend=f"install it: {command(extra, otherwise=package)}")


class KernelUnavailable(TallowError, RuntimeError):
    """No kernel takes these arguments on this device."""


class KernelCompileError(TallowError, RuntimeError):
    """The source of a kernel does not compile, or lacks the kernel."""


class WorkerError(TallowError, RuntimeError):
    """A worker process that died, or took too long."""


class DistributedError(TallowError, RuntimeError):
    """Processes that compute together: one of them is gone, does not answer, or does something else."""


class DatasetError(TallowError, RuntimeError, ValueError):
    """Data that is missing, truncated or malformed."""


class AudioError(TallowError, RuntimeError, ValueError):
    """Sound that is truncated, damaged, or in no format that is read."""


class HubError(TallowError, OSError):
    """A model that is neither on this machine nor to be had from the Hub."""


class CheckpointError(TallowError, RuntimeError, ValueError):
    """A file that is truncated, malformed, or does not fit the model."""


class TokenizerError(TallowError, ValueError):
    """A tokenizer file, or a text, that cannot be used."""
