"""Results of `torch.jit.script` and `torch.jit.trace`: compiled functions and modules under the originals' names."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from tallow.compiler.compiled import Compiled, OptimizedModule
from tallow.errors import UnsupportedError
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
    """

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
        """Raise UnsupportedError."""
        raise no_archives()


def no_archives() -> UnsupportedError:
    """Return the error of `save`: an archive of TorchScript holds code that PyTorch's compiler has written."""
    return UnsupportedError(
        "jit.save: tallow writes no TorchScript archives",
        hint="save the weights: torch.save(module.state_dict(), path); the code of the module stays in Python",
    )
