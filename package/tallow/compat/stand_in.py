"""tallow under the name `torch`: a finder for `sys.meta_path`, and the modules that it creates.

`MODULES` names the tallow module for a module of PyTorch. The folder `torch`, the room of the stand-in, has the names
that only programs written for PyTorch need: its file `utils/hooks.py` is `torch.utils.hooks`. A module that has both
takes a name from the room first. `absent_modules` lists names that can be imported and raise in use.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType
from typing import Any, Self

from tallow.compat.absent import absent_module
from tallow.compat.absent_modules import ABSENT
from tallow.compat.modules import MODULES, OWN
from tallow.compat.own_models import install_own_models, uninstall_own_models
from tallow.compat.packages import PackageFinder, forget_packages
from tallow.compat.printing import print_as_tallow, print_as_torch
from tallow.compat.uninstalled import UninstalledFinder
from tallow.errors import GraphError, MissingModuleError, MissingNameError

ROOT = "torch"


class StandIn(ModuleType):
    """A module with the name of a PyTorch module and the attributes of a tallow module.

    Setting an attribute sets it on tallow: `torch.backends.cudnn.benchmark = True`.
    """

    __homes__: list[Any]  # where its names are: a module of the room, the tallow module or object that it stands for

    def __init__(self, name: str, homes: list[Any]) -> None:
        super().__init__(name, homes[-1].__doc__)
        self.__homes__ = homes

    @property
    def __dict__(self) -> dict[str, Any]:  # type: ignore[override]
        """The names of the module, for programs that list them: `vars(torch.optim)`. Settings are left out."""
        own = _dict_of(self)
        if not own.get("__listed__"):
            own["__listed__"] = True
            for name in dir(self):
                if name not in own and callable(value := getattr(self, name)):
                    own[name] = value
        return own

    def __getattr__(self, name: str) -> Any:
        path = f"{self.__name__}.{name}"
        if path in OWN:
            return _resolve(OWN[path])
        if name == "__all__":
            return [public for public in dir(self) if not public.startswith("_")]
        if name.startswith("__") and name not in DUNDERS:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        for home in self.__homes__ if path not in MODULES else ():
            value = getattr(home, name, _MISSING)
            if value is _MISSING or isinstance(value, _NO_NAMES):  # a tallow module that PyTorch does not have
                continue
            if isinstance(value, type):
                _resolve_annotations(value)
            if callable(value):
                _dict_of(self)[name] = value  # faster the next time; other values are settings, which may change
            return value
        if is_module(path):
            return importlib.import_module(path)
        raise MissingNameError(_lacks(path))

    def __setattr__(self, name: str, value: Any) -> None:
        if isinstance(value, StandIn) and f"{self.__name__}.{name}" in OWN:
            return  # a function hides the module of its name
        if name.startswith("__") or isinstance(value, StandIn):  # as the import system does
            super().__setattr__(name, value)
        else:
            home = next((home for home in self.__homes__ if name in vars(home)), self.__homes__[-1])
            setattr(home, name, value)
            _dict_of(self).pop(name, None)

    def __dir__(self) -> list[str]:
        prefix = f"{self.__name__}."
        below = {
            path.removeprefix(prefix).split(".")[0] for path in (*MODULES, *ABSENT, *OWN) if path.startswith(prefix)
        }
        if (room := _room_of(self.__name__)) is not None:
            below |= {module.name for module in pkgutil.iter_modules(getattr(room, "__path__", []))}
        names = {n for home in self.__homes__ for n in dir(home) if not isinstance(getattr(home, n), _NO_NAMES)}
        return sorted(below | {name for name in names if not name.startswith("__")})


def _resolve_annotations(cls: type) -> None:
    """Make the annotations of a class of tallow, strings in its source, objects, as those of PyTorch's classes are."""
    for base in cls.__mro__:
        own = inspect.get_annotations(base) if base.__module__.partition(".")[0] == "tallow" else {}
        if any(isinstance(hint, str) for hint in own.values()):
            with suppress(NameError):  # of a name for type checkers
                base.__annotations__ = inspect.get_annotations(base, eval_str=True)


_dict_of: Any = vars(ModuleType)["__dict__"].__get__  # of a module, without listing its names
_MISSING = object()
_NO_NAMES = (ModuleType, type(annotations))  # torch.jit.annotations is a module, not the statement of that name
DUNDERS = ("__config__", "__file__")  # names of this form that are no business of the import system alone


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
        if not _is_of_torch(fullname):
            return None
        if not is_module(fullname):
            # Without `name=`: with it, `from torch import fx` would replace the message.
            raise MissingModuleError(_lacks(fullname))
        return ModuleSpec(fullname, self, origin=f"tallow, which stands in for {ROOT}", is_package=True)

    def create_module(self, spec: ModuleSpec) -> StandIn:
        homes = [] if (room := _room_of(spec.name)) is None else [room]
        if spec.name in ABSENT:
            homes.append(absent_module(spec.name, *ABSENT[spec.name]))
        return StandIn(spec.name, [*homes, _resolve(MODULES[spec.name])] if spec.name in MODULES else homes)

    def find_distributions(self, context: Any) -> Iterator[Any]:
        """Yield the metadata of `torch`: `importlib.metadata` asks, and packages read the version so."""
        if context.name in (None, ROOT):
            metadata = importlib.import_module("tallow.compat.metadata")
            yield metadata.StandInDistribution(ROOT, importlib.import_module("tallow.compat.version").__version__)

    def exec_module(self, module: ModuleType) -> None:
        """Do nothing: the module is complete."""

    def names_of(self, value: Any) -> list[str]:
        """Return the full names by which modules of PyTorch have a class or a function of tallow, as its files do."""
        module, name = value.__module__, value.__qualname__
        own = [path for path, place in OWN.items() if place == f"{module}:{name}"]
        homes = {path: sys.modules.get(home) for path, home in MODULES.items()}
        return own + [f"{path}.{name}" for path, home in homes.items() if getattr(home, name, None) is value]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        uninstall_torch()


def install_torch(*, replace: bool = False, own_models: bool = False) -> TorchFinder:
    """Make `import torch` give tallow, and likewise every PyTorch submodule that tallow supports.

    It lasts until `uninstall_torch`, or the end of a block: `with install_torch(): import model`. Modules imported
    meanwhile keep their names. Shapes, dtypes and layouts print as PyTorch's. A second call has no effect.

    Using something that tallow lacks raises an error that names it: ModuleNotFoundError for a module, AttributeError
    for a name.

    Args:
        replace: replace PyTorch if it is imported already; modules that refer to it keep it.
        own_models: let `import transformers`, `sentence_transformers` and `peft` give tallow's modules of these names
            also where the packages are installed. Where they are not, they do in any case.

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
    finder.replaced |= install_own_models(prefer=own_models)
    for name in imported:
        sys.modules.pop(name, None)
    sys.meta_path.insert(0, finder)
    sys.meta_path += [PackageFinder(), UninstalledFinder()]
    print_as_torch()
    return finder


def uninstall_torch() -> None:
    """Undo `install_torch`: the name `torch` means PyTorch again, the imported module if there was one."""
    for finder in [finder for finder in sys.meta_path if isinstance(finder, TorchFinder)]:
        finders = (TorchFinder, PackageFinder, UninstalledFinder)
        sys.meta_path[:] = [other for other in sys.meta_path if not isinstance(other, finders)]
        forget_packages()
        uninstall_own_models()
        print_as_tallow()
        for name in _modules_of_torch():
            del sys.modules[name]
        sys.modules.update(finder.replaced)


def _modules_of_torch() -> dict[str, ModuleType]:
    return {name: module for name, module in sys.modules.items() if _is_of_torch(name)}


def _is_of_torch(name: str) -> bool:
    return name in (ROOT, "functorch") or name.startswith((f"{ROOT}.", "functorch."))


def is_module(path: str) -> bool:
    """Return whether there is a module for this module of PyTorch, such as "torch.utils.hooks"."""
    return path in MODULES or path in ABSENT or _in_room(path)


def _in_room(path: str) -> bool:
    """Return whether the room has a file for a module of PyTorch. Folders above it are imported."""
    above = path.rpartition(".")[0]
    if above and not (_in_room(above) and hasattr(importlib.import_module(f"{__package__}.{above}"), "__path__")):
        return False
    return find_spec(f"{__package__}.{path}") is not None


def _room_of(path: str) -> ModuleType | None:
    """Return the module of the room for a module of PyTorch, if it has one."""
    return importlib.import_module(f"{__package__}.{path}") if _in_room(path) else None


def all_modules() -> list[str]:
    """Return the names of all modules that the stand-in has."""
    return sorted({*MODULES, *ABSENT, *_below(ROOT)})


def _below(path: str) -> Iterator[str]:
    yield path
    for module in pkgutil.iter_modules(getattr(_room_of(path), "__path__", [])):
        yield from _below(f"{path}.{module.name}")


def _resolve(place: str) -> Any:
    """Return the module or object of an entry of `MODULES`, such as "tallow.backends:cudnn"."""
    home, _, attributes = place.partition(":")
    value: Any = importlib.import_module(home)
    for attribute in filter(None, attributes.split(".")):
        value = getattr(value, attribute)
    return value


def _lacks(path: str) -> str:
    return f"{path}: tallow, which stands in for {ROOT} here, has no {path.rpartition('.')[2]!r}"
