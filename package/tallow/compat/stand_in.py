"""tallow under the name `torch`: a finder for `sys.meta_path`, and the modules it makes."""

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
    """A module of PyTorch's that answers with what tallow has under its names.

    What is set on it is set on tallow: `torch.backends.cudnn.benchmark = True`.
    """

    __tallow__: Any  # the module, or the object, that it stands for

    def __init__(self, name: str, stands_for: Any) -> None:
        super().__init__(name, stands_for.__doc__)
        self.__tallow__ = stands_for

    def __getattr__(self, name: str) -> Any:
        path = f"{self.__name__}.{name}"
        if path in MODULES:
            return importlib.import_module(path)
        if path in OWN:
            return _resolve(OWN[path])
        if name == "__all__":
            return [listed for listed in dir(self) if not listed.startswith("_")]
        if name.startswith("__"):
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        found = getattr(self.__tallow__, name, _MISSING)
        if found is _MISSING or isinstance(found, ModuleType):  # a module of tallow's that PyTorch does not have
            raise MissingNameError(_lacks(path))
        if callable(found):
            self.__dict__[name] = found  # the next time Python finds it by itself; settings, though, may change
        return found

    def __setattr__(self, name: str, value: Any) -> None:
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
    """Finds `torch` and all below it.

    Attributes:
        replaced: PyTorch's own modules that were imported before, for when the finder leaves.
    """

    def __init__(self, replaced: dict[str, ModuleType]) -> None:
        self.replaced = replaced

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: Any = None) -> ModuleSpec | None:
        if fullname != ROOT and not fullname.startswith(f"{ROOT}."):
            return None
        if fullname not in MODULES:
            # Without the name in it, which would let `from torch import fx` swallow the message.
            raise MissingModuleError(_lacks(fullname))
        return ModuleSpec(fullname, self, origin=f"tallow, which stands in for {ROOT}", is_package=True)

    def create_module(self, spec: ModuleSpec) -> StandIn:
        return StandIn(spec.name, _resolve(MODULES[spec.name]))

    def exec_module(self, module: ModuleType) -> None:
        """Nothing is left to run."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        uninstall_torch()


def install_torch(*, replace: bool = False) -> TorchFinder:
    """Let `import torch`, and every module of PyTorch's that tallow has, give tallow.

    It holds until `uninstall_torch`, or the end of a block: `with install_torch(): import model`. What was imported
    meanwhile keeps its names. Installing twice is installing once.

    What tallow does not have is an error that names it: a ModuleNotFoundError at an import, an AttributeError else.

    Args:
        replace: take the place of PyTorch where it is imported already; modules that hold it keep it.
    Raises:  GraphError if PyTorch is imported already, unless `replace`

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
            f"install_torch: PyTorch itself is imported already, from {getattr(imported.get(ROOT), '__file__', '?')}",
            mend="call install_torch() before the first `import torch`, or install_torch(replace=True)",
        )
    made = TorchFinder(imported)
    for name in imported:
        del sys.modules[name]
    sys.meta_path.insert(0, made)
    return made


def uninstall_torch() -> None:
    """Give the name `torch` back: to PyTorch if it was imported before, else to whoever is imported next."""
    for finder in [finder for finder in sys.meta_path if isinstance(finder, TorchFinder)]:
        sys.meta_path.remove(finder)
        for name in _modules_of_torch():
            del sys.modules[name]
        sys.modules.update(finder.replaced)


def _modules_of_torch() -> dict[str, ModuleType]:
    return {n: module for n, module in sys.modules.items() if n == ROOT or n.startswith(f"{ROOT}.")}


def _resolve(place: str) -> Any:
    """What an entry of `MODULES` stands for, written as entry points are: "tallow.backends:cudnn"."""
    home, _, attributes = place.partition(":")
    found = importlib.import_module(home)
    for attribute in filter(None, attributes.split(".")):
        found = getattr(found, attribute)
    return found


def _lacks(path: str) -> str:
    return f"{path}: tallow, which stands in for {ROOT} here, has no {path.rpartition('.')[2]!r}"
