"""tallow under the name `torch`: a finder for `sys.meta_path`, and the modules that it creates."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, Self

from tallow.compat.modules import MODULES, OWN
from tallow.errors import GraphError, MissingModuleError, MissingNameError

ROOT = "torch"


class StandIn(ModuleType):
    """A module with the name of a PyTorch module and the attributes of a tallow module.

    Setting an attribute sets it on tallow: `torch.backends.cudnn.benchmark = True`.
    """

    __tallow__: Any  # the tallow module or object that it stands for

    def __init__(self, name: str, stands_for: Any) -> None:
        super().__init__(name, stands_for.__doc__)
        self.__tallow__ = stands_for

    def __getattr__(self, name: str) -> Any:
        path = f"{self.__name__}.{name}"
        if path in OWN:
            return _resolve(OWN[path])
        if path in MODULES:
            return importlib.import_module(path)
        if name == "__all__":
            return [public for public in dir(self) if not public.startswith("_")]
        if name.startswith("__"):
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        value = getattr(self.__tallow__, name, _MISSING)
        if value is _MISSING or isinstance(value, ModuleType):  # a tallow module that PyTorch does not have
            raise MissingNameError(_lacks(path))
        if callable(value):
            self.__dict__[name] = value  # faster the next time; other values are settings, which may change
        return value

    def __setattr__(self, name: str, value: Any) -> None:
        if isinstance(value, StandIn) and f"{self.__name__}.{name}" in OWN:
            return  # a function hides the module of its name
        if name.startswith("__") or isinstance(value, StandIn):  # as the import system does
            super().__setattr__(name, value)
        else:
            setattr(self.__tallow__, name, value)
            self.__dict__.pop(name, None)

    def __dir__(self) -> list[str]:
        prefix = f"{self.__name__}."
        below = {path.removeprefix(prefix).split(".")[0] for path in (*MODULES, *OWN) if path.startswith(prefix)}
        names = {n for n in dir(self.__tallow__) if not isinstance(getattr(self.__tallow__, n), ModuleType)}
        return sorted(below | {name for name in names if not name.startswith("__")})


_MISSING = object()


class TorchFinder(MetaPathFinder, Loader):
    """A finder for `torch` and its submodules.

    Attributes:
        replaced: PyTorch's own modules that were imported before, to restore later.
    """

    def __init__(self, replaced: dict[str, ModuleType]) -> None:
        self.replaced = replaced

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: Any = None) -> ModuleSpec | None:
        """Return the spec of `torch` or of a module below it.

        Raises:  MissingModuleError for a module of PyTorch that tallow does not have
        """
        if fullname != ROOT and not fullname.startswith(f"{ROOT}."):
            return None
        if fullname not in MODULES:
            # Without `name=`: with it, `from torch import fx` would replace the message.
            raise MissingModuleError(_lacks(fullname))
        return ModuleSpec(fullname, self, origin=f"tallow, which stands in for {ROOT}", is_package=True)

    def create_module(self, spec: ModuleSpec) -> StandIn:
        return StandIn(spec.name, _resolve(MODULES[spec.name]))

    def exec_module(self, module: ModuleType) -> None:
        """Do nothing: the module is complete."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        uninstall_torch()


def install_torch(*, replace: bool = False) -> TorchFinder:
    """Make `import torch` give tallow, and likewise every PyTorch submodule that tallow supports.

    It lasts until `uninstall_torch`, or the end of a block: `with install_torch(): import model`. Modules imported
    meanwhile keep their names. A second call has no effect.

    Using something that tallow lacks raises an error that names it: ModuleNotFoundError for a module, AttributeError
    for a name.

    Args:
        replace: replace PyTorch if it is imported already; modules that refer to it keep it.

    Raises: GraphError if PyTorch is imported already, unless `replace`.

    Example:
        >>> import tallow.compat
        >>> with tallow.compat.install_torch(replace=True):
        ...     import torch
        >>> torch.ones(2) + 1
        tensor([2., 2.])
    """
    for finder in sys.meta_path:
        if isinstance(finder, TorchFinder):
            return finder
    imported = _modules_of_torch()
    if imported and not replace:
        raise GraphError(
            f"install_torch: PyTorch is imported already, from {getattr(imported.get(ROOT), '__file__', '?')}",
            hint="call install_torch() before the first `import torch`, or install_torch(replace=True)",
        )
    finder = TorchFinder(imported)
    for name in imported:
        del sys.modules[name]
    sys.meta_path.insert(0, finder)
    return finder


def uninstall_torch() -> None:
    """Undo `install_torch`: the name `torch` means PyTorch again, the imported module if there was one."""
    for finder in [finder for finder in sys.meta_path if isinstance(finder, TorchFinder)]:
        sys.meta_path.remove(finder)
        for name in _modules_of_torch():
            del sys.modules[name]
        sys.modules.update(finder.replaced)


def _modules_of_torch() -> dict[str, ModuleType]:
    return {n: module for n, module in sys.modules.items() if n == ROOT or n.startswith(f"{ROOT}.")}


def _resolve(place: str) -> Any:
    """Return the module or object of an entry of `MODULES`, such as "tallow.backends:cudnn"."""
    home, _, attributes = place.partition(":")
    value: Any = importlib.import_module(home)
    for attribute in filter(None, attributes.split(".")):
        value = getattr(value, attribute)
    return value


def _lacks(path: str) -> str:
    return f"{path}: tallow, which stands in for {ROOT} here, has no {path.rpartition('.')[2]!r}"
