"""Packages from PyPI, by micropip: `pip install` in a cell, and imports of packages that were tried.

micropip takes wheels without compiled parts, and packages of Pyodide's distribution. tallow is torch to it. A
requirement that has neither is left out, and the page says so.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.metadata
import importlib.util
import io
import re
import shlex
import site
import sys
import zipfile
from collections.abc import Awaitable, Callable, Iterator, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

import pyodide_js

IGNORED = ("-q", "--quiet", "-U", "--upgrade", "--user", "--no-cache-dir")
# Of micropip's message about requirements without a wheel: 'name>=1'.
WITHOUT_WHEEL = re.compile(r"pure Python 3 wheel for:? (.*)")
# Packages import the first because PyTorch requires it, and the second from torch.hub.
OF_PYTORCH = ("typing-extensions", "tqdm")
HUB = "huggingface_hub"
MISSED = {HUB: "httpcore2"}  # what a package imports and requires on other systems only
Say = Callable[[str], None]
Install = Callable[..., Awaitable[None]]


class PipError(ValueError):
    """A `pip install` that the page cannot do."""


async def install(command: str, say: Say) -> None:
    """Install packages, by the arguments of `pip install`."""
    arguments = shlex.split(command, comments=True)
    requirements = [argument for argument in arguments if argument not in (*IGNORED, "--pre", "--no-deps")]
    for argument in requirements:
        if argument.startswith("-"):
            raise PipError(f"pip install {argument} is not available in a page: name packages, or a wheel's address")
    await _install(requirements, say, deps="--no-deps" not in arguments, pre="--pre" in arguments)


async def load_micropip() -> Install:
    """Load micropip, whose `install` then does what `pip install` does here. Return its own `install`."""
    await pyodide_js.loadPackage("micropip", messageCallback=_ignore)
    import micropip

    its_own = vars(micropip).setdefault("install_from_index", micropip.install)
    micropip.install = install_by_micropip
    return its_own


async def install_by_micropip(
    requirements: str | Sequence[str], keep_going: bool = False, deps: bool = True, **options: Any
) -> None:
    """Install packages, by the arguments of `micropip.install`. `keep_going` has no effect: it always does."""
    named = [requirements] if isinstance(requirements, str) else list(requirements)
    await _install(named, lambda text: print(text, end=""), deps=deps, **options)


async def _install(requirements: Sequence[str], say: Say, **options: Any) -> None:
    its_own = await load_micropip()
    say(f"Installing {', '.join(requirements)}.\n")
    importlib.metadata.version("torch")  # the stand-in's distributions are not among the new ones
    before = _installed()
    asked, left_out = {_name(requirement) for requirement in requirements}, LeftOut()
    sys.meta_path.append(left_out)
    try:
        while True:
            try:
                await its_own([*requirements, *OF_PYTORCH], keep_going=True, **options)
                break
            except ValueError as error:
                missing = _without_wheel(str(error))
                for requirement in missing:
                    name = _name(requirement)
                    files = await _files(name)  # micropip has the same message where PyPI does not answer
                    if await _install_python_part(name, files, say):
                        continue
                    if name in asked:
                        raise
                    left_out.add(requirement)
                if not missing:
                    raise
    finally:
        sys.meta_path.remove(left_out)
        importlib.invalidate_caches()
    if left_out.versions:
        say(f"Without {', '.join(sorted(left_out.versions))}, which Pyodide does not have.\n")
    run_threads_inline()
    await its_own([MISSED[name] for name in _installed() if name in MISSED])
    new = sorted(f"{name} {version}" for name, version in _installed().items() if name not in before)
    if {HUB, "httpx2"} <= _installed().keys() and HUB not in before:
        importlib.import_module("tallow.hub.package_client").connect()
    say(f"Installed {', '.join(new)}.\n" if new else "Everything is installed already.\n")


def _without_wheel(message: str) -> list[str]:
    """Return the requirements that micropip has found no wheel for."""
    found = WITHOUT_WHEEL.search(message)
    return list(dict.fromkeys(re.findall(r"'([^']+)'", found[1]))) if found else []


async def _files(name: str) -> list[dict[str, Any]]:
    """Return the files of a project on PyPI; none if there is no such project. Raises: PipError without an answer."""
    from pyodide.http import pyfetch

    try:
        answer = await pyfetch(f"{INDEX}/{name}/", headers={"Accept": "application/vnd.pypi.simple.v1+json"})
    except OSError as error:
        raise PipError(f"{name}: PyPI does not answer: check the name and the connection") from error
    if answer.status == 404:
        return []
    if not answer.ok:
        raise PipError(f"{name}: PyPI answers {answer.status}: install it again later")
    files: list[dict[str, Any]] = (await answer.json())["files"]
    return files


def _name(requirement: str) -> str:
    return re.split(r"[^\w.-]", requirement, maxsplit=1)[0].lower().replace("_", "-")


def _installed() -> dict[str, str]:
    return {each.name: each.version for each in importlib.metadata.distributions(path=site.getsitepackages())}


class LeftOut(MetaPathFinder):
    """Requirements that cannot be installed: micropip finds them installed, and goes on without them."""

    def __init__(self) -> None:
        self.versions: dict[str, str] = {}

    def add(self, requirement: str) -> None:
        """Leave a requirement out, as if a version that satisfies it were installed."""
        from micropip._vendored.packaging.src.packaging.requirements import Requirement

        wanted = Requirement(requirement)
        candidates = [*(each.version for each in wanted.specifier), "9999"]
        fitting = wanted.specifier.filter(candidates, prereleases=True)
        self.versions[_name(wanted.name)] = next(iter(fitting), candidates[0])

    def find_spec(self, fullname: str, path: Any, target: ModuleType | None = None) -> ModuleSpec | None:
        return None

    def find_distributions(self, context: Any) -> Iterator[Any]:
        from tallow.compat.metadata import StandInDistribution

        if context.name and (name := _name(context.name)) in self.versions:
            yield StandInDistribution(name, self.versions[name])


def run_threads_inline() -> None:
    """Let pools of threads do their work when it is submitted: a tab starts no threads of Python."""
    from concurrent.futures import Future, thread

    def submit(self: Any, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            future.set_result(function(*args, **kwargs))
        except Exception as error:
            future.set_exception(error)
        return future

    thread.ThreadPoolExecutor.submit = submit  # type: ignore[method-assign]
    if importlib.util.find_spec("tqdm"):
        import tqdm

        tqdm.tqdm.monitor_interval = 0  # it would start a thread, and warn that it cannot


# ---- wheels with compiled parts that are not needed

PYTHON_PARTS = {"torchvision": lambda torch: f"0.{int(torch.split('.')[1]) + 15}."}  # its release for one of PyTorch
INDEX = "https://pypi.org/simple"
COMPILED = (".so", ".pyd", ".dylib", ".dll")


async def _install_python_part(name: str, files: list[dict[str, Any]], say: Say) -> bool:
    """Install the Python files of a wheel for other machines, if that is known to work. Its requirements follow."""
    if name not in PYTHON_PARTS:
        return False
    from pyodide.http import pyfetch

    prefix = f"{name}-{PYTHON_PARTS[name](importlib.metadata.version('torch'))}"
    tag = f"-cp3{sys.version_info.minor}-"
    wheels = [f for f in files if f["filename"].startswith(prefix) and f["filename"].endswith(".whl")]
    wheels = [file for file in wheels if tag in file["filename"]]
    if not wheels:
        return False
    smallest = min(wheels, key=lambda file: file.get("size") or 0)
    say(f"Installing the Python part of {smallest['filename']}.\n")
    data = await (await pyfetch(smallest["url"])).bytes()
    if hashlib.sha256(data).hexdigest() != smallest["hashes"]["sha256"]:
        raise PipError(f"{smallest['filename']} is damaged: install it again")
    folder = Path(site.getsitepackages()[0])
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        for member in archive.namelist():
            parts = Path(member).parts
            if ".." in parts or parts[0].endswith(".libs"):
                continue
            if member.endswith(COMPILED):
                place = (folder / member).with_name(f"{parts[-1].partition('.')[0]}.so")
                place.parent.mkdir(parents=True, exist_ok=True)
                place.touch()  # the package asks PyTorch to load it: see tallow.compat.libraries
            else:
                archive.extract(member, folder)
    importlib.invalidate_caches()
    requires = importlib.metadata.requires(name) or []
    await _install([each for each in requires if "extra ==" not in each], lambda text: None, deps=True)
    return True


def _ignore(message: str) -> None:
    pass
