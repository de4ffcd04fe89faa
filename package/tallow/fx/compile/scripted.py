"""Results of `torch.jit.script` and `torch.jit.trace`: compiled functions and modules under the originals' names."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable
from typing import Any

from tallow import export
from tallow.core.tensor import Tensor
from tallow.errors import TraceError, UnsupportedError, warn
from tallow.fx.compile.compiled import Compiled
from tallow.fx.compile.optimized_module import OptimizedModule
from tallow.nn.module import Module

SHARED = ("_parameters", "_buffers", "_modules", "_non_persistent_buffers_set")


class ScriptFunction(Compiled):
    """A function that `jit.script` has compiled. A call that no plan can hold runs eagerly, without a warning."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function, warns=False)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.function,)

    def save(self, f: Any, _extra_files: Any = None) -> None:
        """Raise UnsupportedError."""
        raise no_archives()


class ScriptModule(OptimizedModule):
    """A module that `jit.script` has compiled, with the names of the original in `state_dict` and elsewhere.

    Parameters, buffers and submodules are the original's. A call that no plan can hold runs eagerly, without a warning.

    Attributes:
        example: the arguments of `jit.trace`, (args, kwargs), by which `save` exports the module; None without them.
    """

    example: tuple[tuple[Any, ...], dict[str, Any]] | None = None

    def __init__(self, module: Module) -> None:
        super().__init__(module, warns=False)
        self.__dict__.update({name: module.__dict__[name] for name in SHARED}, _orig_mod=module)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._orig_mod,)

    def __deepcopy__(self, memo: dict[int, Any]) -> ScriptModule:
        return type(self)(copy.deepcopy(self._orig_mod, memo))

    @property
    def original_name(self) -> str:
        """The name of the original's class."""
        return type(self._orig_mod).__name__

    def save(self, f: Any, _extra_files: Any = None) -> None:
        """Write the graph of a traced module, by `tallow.export`; see `jit.save`.

        Raises: UnsupportedError for a module without an example
        """
        if self.example is None:
            raise no_archives()
        export.save(_exported(self._orig_mod, *self.example), f, extra_files=_extra_files)


def _exported(module: Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> export.ExportedProgram:
    """Export a module for batches of any size, or with a warning for that of the example alone."""
    batch = export.Dim("batch")
    first = {x.shape[0] for x in (*args, *kwargs.values()) if isinstance(x, Tensor) and x.ndim}
    if len(first) == 1 and first.pop() > 1:
        bound = inspect.signature(module.forward).bind(*args, **kwargs)
        sizes = {name: {0: batch} for name, x in bound.arguments.items() if isinstance(x, Tensor) and x.ndim}
        try:
            return export.export(module, args, kwargs, dynamic_shapes=sizes)
        except TraceError as error:
            reason = str(error)
    else:
        reason = "its arguments have no batch of 2 or more in common"
    warn(f"jit.save: the saved module takes the sizes of the example only: {reason}")
    return export.export(module, args, kwargs)


def no_archives() -> UnsupportedError:
    """Return the error of `save`: an archive of TorchScript holds code that PyTorch's compiler has written."""
    return UnsupportedError(
        "jit.save: tallow writes no TorchScript archives",
        hint="save the graph of a traced module, jit.save(jit.trace(module, example), path); or its weights, "
        "torch.save(module.state_dict(), path)",
    )
