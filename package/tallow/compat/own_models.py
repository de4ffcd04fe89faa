"""tallow's models under the names of packages: `transformers`, `sentence_transformers`, `peft`, `trl` and `optimum`.

A program's `import transformers` gives `tallow.transformers` where the package is not installed, or where it is asked
for. Modules below have the names of the package's files, such as `transformers.models.bert.modeling_bert`: what
tallow has in a module of that name, and then every name of the package.
"""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType
from typing import Any

from tallow.errors import MissingModuleError, MissingNameError

PACKAGES = ("transformers", "sentence_transformers", "peft", "trl", "optimum")
# Files of the packages whose names tallow has in others.
FILES = frozenset(
    {
        *("configuration_utils", "modeling_utils", "tokenization_utils", "tokenization_utils_base", "processing_utils"),
        *("tokenization_utils_fast", "image_processing_utils", "feature_extraction_utils", "image_utils"),
        *("generation.utils", "pipelines.base", "models", "models.auto", "models.auto.modeling_auto"),
        *("models.auto.configuration_auto", "models.auto.tokenization_auto", "tuners", "tuners.lora"),
        *("data", "file_utils", "utils.generic", "utils.hub", "utils.import_utils", "utils.versions"),
        *("utils", "utils.other", "utils.peft_types", "similarity_functions", "SentenceTransformer"),
    }
)
# models.bert, models.bert.modeling_bert
OF_A_MODEL = re.compile(r"models\.(\w+)(?:\.(?:modeling|configuration|tokenization|processing|image_processing)_\1)?")


class OwnModule(ModuleType):
    """A module with the name of a package's, and the names of tallow's.

    Attributes:
        homes: where its names are: a module of tallow of that name, and tallow's package.
    """

    def __init__(self, name: str, homes: list[ModuleType]) -> None:
        super().__init__(name, homes[-1].__doc__)
        vars(self)["homes"] = homes

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name not in ("__all__", "__version__"):
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        for home in vars(self)["homes"]:
            value = getattr(home, name, None)
            if value is not None and not isinstance(value, ModuleType):
                vars(self)[name] = value
                return value
        path = f"{self.__name__}.{name}"
        if is_module(path):
            return importlib.import_module(path)
        raise MissingNameError(
            f"{path}: tallow, which stands in for {self.__name__.partition('.')[0]} here, has no {name!r}",
            hint=f"install {self.__name__.partition('.')[0]}: it runs on tallow's torch",
        )

    def __dir__(self) -> list[str]:
        return sorted({name for home in vars(self)["homes"] for name in dir(home) if not name.startswith("__")})


class OwnModelsFinder(MetaPathFinder, Loader):
    """A finder for the packages; at the end of `sys.meta_path` it is asked for those that are not installed."""

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: Any = None) -> ModuleSpec | None:
        """Return the spec of a package, or of a module below one that is tallow's.

        Raises:  MissingModuleError for a module that tallow does not have
        """
        root = fullname.partition(".")[0]
        if root not in PACKAGES or (fullname != root and not is_own(sys.modules.get(root))):
            return None
        if find_spec(f"tallow.{root}") is None or (fullname == root != "transformers" and _has_transformers()):
            return None
        if not is_module(fullname):
            raise MissingModuleError(
                f"{fullname}: tallow, which stands in for {root} here, has no such module; install {root} for it"
            )
        return ModuleSpec(fullname, self, origin=f"tallow, which stands in for {root}", is_package=True)

    def create_module(self, spec: ModuleSpec) -> OwnModule:
        """Return the module of a spec."""
        root, _, rest = spec.name.partition(".")
        files = dict.fromkeys((spec.name, _at_the_top(spec.name))) if rest else ()
        homes = (f"tallow.{path}" for path in (*filter(_has_file, files), root))
        return OwnModule(spec.name, [importlib.import_module(home) for home in homes])

    def exec_module(self, module: ModuleType) -> None:
        """Do nothing: the module is complete."""


def is_module(path: str) -> bool:
    """Return whether there is a module for this one of the packages, such as "transformers.modeling_utils"."""
    _, _, rest = path.partition(".")
    if not rest or rest in FILES or OF_A_MODEL.fullmatch(rest) is not None:
        return True
    return _has_file(path) or ("." in rest and _has_file(_at_the_top(path)))


def _at_the_top(path: str) -> str:
    """Return where tallow has a file: "transformers.logging" for "transformers.utils.logging"."""
    return f"{path.partition('.')[0]}.{path.rpartition('.')[2]}"


def _has_file(path: str) -> bool:
    root, _, rest = path.partition(".")
    above = rest.rpartition(".")[0]
    if above and not _has_file(f"{root}.{above}"):
        return False
    if above and not hasattr(importlib.import_module(f"tallow.{root}.{above}"), "__path__"):
        return False  # a file has no modules below it
    spec = find_spec(f"tallow.{path}")
    return spec is not None and (not above or spec.parent != "")


def _has_transformers() -> bool:
    """Return whether a program uses transformers itself: it asks for peft, and takes it for the whole library."""
    module = sys.modules.get("transformers")
    return module is not None and not is_own(module)


def is_own(module: ModuleType | None) -> bool:
    """Return whether a module is one of these."""
    return isinstance(getattr(getattr(module, "__spec__", None), "loader", None), OwnModelsFinder)


def install_own_models(*, prefer: bool = False) -> dict[str, ModuleType]:
    """Let the packages' names mean tallow's.

    Args:    prefer: also where the packages are installed; modules imported before are set aside
    Returns: the modules set aside
    """
    uninstall_own_models()
    if not prefer:
        sys.meta_path.append(OwnModelsFinder())
        return {}
    former = {name: module for name, module in sys.modules.items() if name.partition(".")[0] in PACKAGES}
    for name in former:
        del sys.modules[name]
    sys.meta_path.insert(0, OwnModelsFinder())
    return former


def uninstall_own_models() -> None:
    """Undo `install_own_models`; modules set aside stay so."""
    sys.meta_path[:] = [finder for finder in sys.meta_path if not isinstance(finder, OwnModelsFinder)]
    for name in [name for name, module in sys.modules.items() if is_own(module)]:
        del sys.modules[name]
