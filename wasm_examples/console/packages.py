"""Packages of Pyodide, and those of PyPI that were tried: each loads when code that imports it runs first."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Callable, Iterable

import js
import pyodide_js
from pyodide.code import find_imports
from pyodide.ffi import to_js

# Packages that run on tallow, by the name of their module: an import installs them. docs/browser.md has what was tried.
TRIED = {
    "diffusers": "diffusers",
    "einops": "einops",
    "einx": "einx",
    "entmax": "entmax",
    "gpytorch": "gpytorch",
    "huggingface_hub": "huggingface-hub",
    "keras": "keras",
    "pyro": "pyro-ppl",
    "rotary_embedding_torch": "rotary-embedding-torch",
    "timm": "timm",
    "torchdiffeq": "torchdiffeq",
    "torchvision": "torchvision",
    "x_transformers": "x-transformers",
}
OWN = (
    "peft",
    "sentence_transformers",
    "transformers",
)  # their names are tallow's, unless a release is named
LOCK = "pyodide-lock.json"  # beside Pyodide's files, on its CDN and in a site (site/pyodide_packages.py)


class Packages:
    """The packages that can load besides those of the site. The list of them loads when it is needed first."""

    def __init__(self) -> None:
        self._is_listed = False

    async def install(self, command: str, say: Callable[[str], None]) -> None:
        """Install packages of PyPI, by the arguments of `pip install`."""
        command = without_own(command, say)
        if command and await self._list([command], say):
            import installing  # late: few sessions need it

            await installing.install(command, say)

    async def load_for(self, source: str, say: Callable[[str], None]) -> None:
        """Load the packages that the code imports. `say` receives what happens, as lines of text.

        What cannot be loaded is left to the import, which raises ModuleNotFoundError.
        """
        missing = [name for name in find_imports(source) if _is_missing(name)]
        if not missing or not await self._list(missing, say):
            return
        known = pyodide_js._api._import_name_to_package_name
        wanted = sorted({package for name in missing if (package := known.get(name)) is not None})
        for tried in sorted({TRIED[name] for name in missing if name in TRIED}):
            try:
                await self.install(tried, say)
            except Exception as error:  # micropip's, if there is no connection
                say(f"{tried} could not be installed: check the connection. {error}\n")
        if not wanted:
            return
        say(f"Loading {', '.join(wanted)}.\n")
        failures: list[str] = []
        await pyodide_js.loadPackage(to_js(wanted), messageCallback=_ignore, errorCallback=failures.append)
        importlib.invalidate_caches()
        if "micropip" in wanted and not failures:
            import installing

            await installing.load_micropip()
        if failures:
            say(f"{', '.join(wanted)} could not be loaded: check the connection. {' '.join(failures)}\n")

    async def _list(self, missing: Iterable[str], say: Callable[[str], None]) -> bool:
        """Add the packages of Pyodide's distribution to those that Pyodide knows. Return whether it knows them."""
        if self._is_listed:
            return True
        address = js.URL.new(LOCK, pyodide_js._api.config.indexURL).href
        try:
            response = await js.fetch(address)
            if not response.ok:
                raise OSError(f"the server answers {response.status}")
            lock = await response.json()
        except Exception as error:  # JavaScript's, if there is no connection
            names = ", ".join(missing)
            say(f"{names}: the list of packages could not be loaded from {address}: check the connection. {error}\n")
            return False
        packages, names = pyodide_js._api.lockfile_packages, pyodide_js._api._import_name_to_package_name
        for name, package in lock.packages.object_entries():
            if hasattr(packages, name):
                continue  # the site's own
            package.file_name = js.URL.new(package.file_name, address).href
            setattr(packages, name, package)
            for module in package.imports:
                names.set(module, name)
        self._is_listed = True
        return True


def without_own(command: str, say: Callable[[str], None]) -> str:
    """Return the arguments of `pip install` without packages whose names are tallow's; "" if nothing is left."""
    kept = []
    for word in command.split():
        if word.strip("'\"").replace("-", "_") in OWN:
            say(f"{word}: tallow has its names; pip install {word}==VERSION installs the package.\n")
        else:
            kept.append(word)
    return " ".join(kept) if any(not word.startswith("-") for word in kept) else ""


def _is_missing(name: str) -> bool:
    if name in sys.modules or name in sys.stdlib_module_names:
        return False
    try:
        return importlib.util.find_spec(name) is None
    except (ImportError, ValueError):  # of a module without a spec
        return False


def _ignore(message: str) -> None:
    pass
