"""The errors that tallow raises, and how it warns.

Each derives from `TallowError` and from the built-in error that PyTorch raises in the same place, so that `except`
clauses of ported code keep working:

    TallowError
    ├── ShapeError          RuntimeError      shapes do not match each other or the op
    ├── DtypeError          RuntimeError      a dtype that the op does not accept, or two that do not mix
    │   └── UnsupportedDtypeError  NotImplementedError  a dtype that PyTorch has no code for either
    ├── DeviceError         RuntimeError      tensors on two devices, or a device that is not available
    ├── GraphError          RuntimeError      misuse of autograd: freed graph, stale saved value, ...
    ├── TraceError          ValueError        a value that decides, but is unknown while tracing; a RuntimeError as well
    ├── GrammarError        ValueError        a grammar, pattern or JSON schema that cannot constrain a text
    ├── NumericError        RuntimeError      NaN or infinity where a number is needed
    ├── LinAlgError         RuntimeError      a matrix without an inverse, a factorisation or eigenvalues
    ├── OutOfMemoryError    RuntimeError      not enough memory for an array; a MemoryError as well
    ├── DimensionError      IndexError        a dim or an index out of range
    ├── ArgumentError       ValueError        any other invalid argument; a RuntimeError as well
    │   └── FailedAssertionError  AssertionError  sizes that a layer's constructor cannot combine
    ├── InvalidKeyError     KeyError          a name or key that is missing, taken or malformed; a ValueError as well
    ├── ArgumentTypeError   TypeError         an argument of the wrong type
    ├── UnsupportedError    NotImplementedError  an argument for a feature that tallow lacks
    ├── MissingNameError    AttributeError    a PyTorch name that tallow lacks
    ├── MissingImportError  ImportError       a name that another module of tallow has
    ├── MissingModuleError  ModuleNotFoundError  a PyTorch module that tallow lacks
    ├── MissingPackageError ImportError       a package of an extra that is not installed
    ├── KernelUnavailable   RuntimeError      no kernel accepts these arguments
    ├── KernelCompileError  RuntimeError      kernel source that does not compile
    ├── WorkerError         RuntimeError      a worker, or a thread of a kernel, that died or timed out
    ├── DistributedError    RuntimeError      a rank that died, does not answer, or runs another collective
    ├── DatasetError        RuntimeError      data that is missing, truncated or malformed; a ValueError as well
    ├── AudioError          RuntimeError      audio that is damaged or in an unknown format; a ValueError as well
    ├── ImageError          RuntimeError      an image that is damaged, too large or in an unknown format; a ValueError
    ├── HubError            OSError           a model that is neither on this machine nor available from the Hub
    ├── SpecialFileError    OSError           a pipe, a device or a socket in the place of a file
    ├── CheckpointError     RuntimeError      a truncated or mismatched file; a ValueError, an UnpicklingError
    └── TokenizerError      ValueError        an invalid tokenizer file or text

`TallowWarning` is the category of warnings about files that are used although a part of them is missing, damaged or
unknown. Messages quote files and requests, so control characters in errors and warnings are escaped.
"""

from __future__ import annotations

import pickle
import sys
import types
import warnings

from tallow.extras import install_command

# Characters that command a terminal (C0, DEL, C1), end a line, or reorder what is shown around them. JSON and Python
# read the escapes alike.
_CODES = {code: f"\\u{code:04x}" for code in (*range(0x20), *range(0x7F, 0xA0))}
_CODES |= {code: f"\\u{code:04x}" for code in (*range(0x2028, 0x202F), *range(0x2066, 0x206A))}
_IN_LINE = _CODES | {ord("\t"): "\\t", ord("\n"): "\\n", ord("\r"): "\\r"}
_IN_TEXT = {code: escape for code, escape in _IN_LINE.items() if chr(code) not in "\t\n"}


def escaped(text: str) -> str:
    """Return a text with its control characters and bidirectional overrides as escapes; keep newlines and tabs."""
    return text if text.isprintable() else text.translate(_IN_TEXT)


def escaped_line(text: str) -> str:
    """Return a text as one line: as `escaped`, with newlines and tabs as escapes too."""
    return text if text.isprintable() else text.translate(_IN_LINE)


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the line that called tallow, however many functions of tallow lie in between."""
    level, frame = 2, sys._getframe(1)
    # A cached property has a frame of functools between two of tallow.
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in ("tallow", "functools"):
        level, frame = level + 1, frame.f_back
    warnings.warn(escaped(message), category, stacklevel=level)


class TallowWarning(UserWarning):
    """A file is used, but a part of it is missing, damaged, or has no effect."""


class TallowError(Exception):
    """Base class of all tallow errors.

    Args:
        message: what was wrong, and where.
        hint: what to do about it; printed on a separate line.
    """

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(escaped(message if hint is None else f"{message}\n  hint: {hint}"))
        self.hint = hint


class ShapeError(TallowError, RuntimeError):
    """Shapes that do not match each other or the op."""


class DtypeError(TallowError, RuntimeError):
    """A dtype that the op does not accept, or two that do not mix."""


class UnsupportedDtypeError(DtypeError, NotImplementedError):
    """A dtype for which there is no code: "not implemented for 'Long'" in PyTorch's words."""


class DeviceError(TallowError, RuntimeError):
    """Tensors on two devices, or a device that is not available."""


class GraphError(TallowError, RuntimeError):
    """Misuse of autograd (a freed graph, an overwritten saved value, a missing gradient) or of a CUDA graph."""


class TraceError(TallowError, ValueError, RuntimeError):
    """A value that decides what a program does, but is not known while `tallow.fx` traces it."""


class GrammarError(TallowError, ValueError):
    """A grammar, a regular expression or a JSON schema that is invalid or cannot constrain a text."""


class NumericError(TallowError, RuntimeError):
    """NaN or infinity where a number is needed."""


class LinAlgError(TallowError, RuntimeError):
    """A matrix without an inverse, a factorisation or eigenvalues."""


class OutOfMemoryError(TallowError, RuntimeError, MemoryError):
    """Not enough memory for an array."""


class DimensionError(TallowError, IndexError):
    """A dim or an index out of range."""


class ArgumentError(TallowError, ValueError, RuntimeError):
    """An invalid argument. PyTorch raises ValueError from its Python code, RuntimeError from its C++ code."""


class FailedAssertionError(ArgumentError, AssertionError):
    """An argument of a layer's constructor that PyTorch checks by an assertion."""


class InvalidKeyError(ArgumentError, KeyError):
    """A name or key that is missing, taken or malformed."""

    __str__ = Exception.__str__  # KeyError would print the message as a repr


class ArgumentTypeError(TallowError, TypeError):
    """An argument of the wrong type."""


class UnsupportedError(TallowError, NotImplementedError):
    """A PyTorch or Keras argument for a feature that tallow lacks. A RuntimeError as well."""


class MissingNameError(TallowError, AttributeError):
    """A PyTorch name that tallow lacks."""

    def __str__(self) -> str:
        message = super().__str__()
        if self.name is None or _will_be_suggested(sys._getframe().f_back):
            return message
        import difflib  # most programs do without it

        near = difflib.get_close_matches(self.name, dir(self.obj), n=1, cutoff=0.7)
        return f"{message}. Did you mean: {near[0]!r}?" if near else message


def _will_be_suggested(caller: types.FrameType | None) -> bool:
    """Return whether the caller of `str` suggests a name itself. The module `traceback` does since Python 3.12; Python
    prints uncaught errors with it since 3.13."""
    in_module = caller is not None and caller.f_globals.get("__name__") == "traceback"
    return sys.version_info >= (3, 13) or (sys.version_info >= (3, 12) and in_module)


class MissingImportError(TallowError, ImportError):
    """A name that another module of tallow has."""


class MissingModuleError(TallowError, ModuleNotFoundError):
    """A PyTorch module that tallow lacks."""


class MissingPackageError(TallowError, ImportError):
    """A package of an extra that is not installed. The hint is the command that installs the extra's packages.

    Args:
        package: the name by which it is imported.
        what: the feature that needs it.
        extra: the extra of tallow that includes it.
    """

    def __init__(self, package: str, what: str, extra: str) -> None:
        command = install_command(extra, otherwise=package)
        super().__init__(f"{what} needs the package {package}", hint=f"install it: {command}")


class KernelUnavailable(TallowError, RuntimeError):
    """No kernel accepts these arguments on this device."""


class KernelCompileError(TallowError, RuntimeError):
    """Kernel source that does not compile, or does not define the kernel."""


class WorkerError(TallowError, RuntimeError):
    """A worker process, or a thread of a kernel, that died or timed out."""


class DistributedError(TallowError, RuntimeError):
    """A rank that died, does not answer, or runs another collective."""


class DatasetError(TallowError, RuntimeError, ValueError):
    """Data that is missing, truncated or malformed."""


class AudioError(TallowError, RuntimeError, ValueError):
    """Audio that is truncated, damaged, or in an unknown format."""


class ImageError(TallowError, RuntimeError, ValueError):
    """An image that is truncated, damaged, too large, or in an unknown format."""


class HubError(TallowError, OSError):
    """A model that is neither on this machine nor available from the Hub."""


class SpecialFileError(TallowError, OSError):
    """A pipe, a device or a socket in the place of a regular file."""


class CheckpointError(TallowError, RuntimeError, ValueError, pickle.UnpicklingError):
    """A file that is truncated, malformed, refused, or does not match the model."""


class TokenizerError(TallowError, ValueError):
    """An invalid tokenizer file or text."""
