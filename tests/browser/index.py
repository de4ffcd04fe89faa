"""A stand-in for PyPI and for Pyodide's CDN, with wheels of this machine: `Index(...).serve(context)`."""

from __future__ import annotations

import hashlib
import io
import json
import re
import zipfile
from pathlib import Path
from urllib.parse import unquote, urlsplit

from playwright.sync_api import BrowserContext, Route

HEADERS = {"Access-Control-Allow-Origin": "*"}
FILES = "https://files.pythonhosted.org/packages"


class Index:
    """Answers as PyPI for the wheels of a folder, and as the CDN for those in the copy of Pyodide.

    The list of Pyodide's packages has none that the copy lacks, so that micropip asks PyPI for it.

    Attributes:
        asked: the projects that were asked for.
        silent: the projects that it does not answer for.
    """

    def __init__(self, wheels: dict[str, bytes], pyodide: Path) -> None:
        self.wheels = wheels
        self.pyodide = pyodide
        self.asked: list[str] = []
        self.silent: set[str] = set()

    def serve(self, context: BrowserContext) -> None:
        """Answer the requests of a browser's pages. Call it before the first page starts (`hub.no_hub`)."""
        context.route("https://pypi.org/simple/**", self._project)
        context.route(f"{FILES}/**", self._file)
        context.route("https://cdn.jsdelivr.net/pyodide/**", self._package)
        context.route("**/runtime/pyodide-3*/pyodide-lock.json", self._list)

    def _project(self, route: Route) -> None:
        name = urlsplit(route.request.url).path.strip("/").rpartition("/")[2]
        self.asked.append(name)
        if name in self.silent:
            route.abort()
            return
        found = {file: data for file, data in self.wheels.items() if _project_of(file) == name}
        if not found:
            route.fulfill(status=404, headers=HEADERS)
            return
        files = [
            {
                "filename": file,
                "url": f"{FILES}/{file}",
                "hashes": {"sha256": hashlib.sha256(data).hexdigest()},
                "size": len(data),
            }
            for file, data in found.items()
        ]
        answer = {"meta": {"api-version": "1.1"}, "name": name, "files": files}
        content_type = "application/vnd.pypi.simple.v1+json"
        route.fulfill(body=json.dumps(answer), headers={**HEADERS, "Content-Type": content_type})

    def _file(self, route: Route) -> None:
        name = unquote(urlsplit(route.request.url).path.rpartition("/")[2])
        if name in self.wheels:
            route.fulfill(body=self.wheels[name], headers=HEADERS)
        else:
            route.fulfill(status=404, headers=HEADERS)

    def _package(self, route: Route) -> None:
        path = self.pyodide / urlsplit(route.request.url).path.rpartition("/")[2]
        if path.is_file():
            route.fulfill(path=path, headers=HEADERS)
        else:
            route.abort()

    def _list(self, route: Route) -> None:
        answer = route.fetch().json()
        listed = answer["packages"]
        answer["packages"] = {
            name: package
            for name, package in listed.items()
            if (self.pyodide / package["file_name"].rpartition("/")[2]).is_file()
        }
        route.fulfill(json=answer)


def tab_index(folder: Path, pyodide: Path) -> Index:
    """Return PyPI with the wheels of a folder, and with stand-ins for two packages that only Pyodide's CDN has."""
    wheels = {path.name: path.read_bytes() for path in folder.glob("*.whl") if "yaml" not in path.name}
    (yaml,) = folder.glob("*yaml*.whl")
    # Keras asks ml_dtypes for the limits of types, and has it convert arrays of bfloat16.
    limits = wheel("ml_dtypes", {"ml_dtypes.py": "from numpy import finfo, float32 as bfloat16, iinfo\n"})
    return Index(wheels | without_compiled_parts(yaml) | limits, pyodide)


def _project_of(wheel: str) -> str:
    return re.sub(r"[-_.]+", "-", wheel.partition("-")[0]).lower()


def wheel(name: str, files: dict[str, str], *requires: str) -> dict[str, bytes]:
    """Return a wheel of version 1.0 without compiled parts, by its file name."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for path, text in files.items():
            archive.writestr(path, text)
        lines = ["Metadata-Version: 2.1", f"Name: {name}", "Version: 1.0", *(f"Requires-Dist: {r}" for r in requires)]
        archive.writestr(f"{name}-1.0.dist-info/METADATA", "\n".join(lines) + "\n")
        tag = "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        archive.writestr(f"{name}-1.0.dist-info/WHEEL", tag)
        archive.writestr(f"{name}-1.0.dist-info/RECORD", "")
    return {f"{name}-1.0-py3-none-any.whl": file.getvalue()}


def without_compiled_parts(path: Path) -> dict[str, bytes]:
    """Return the wheel of the Python files of a wheel: for a package of Pyodide that only its CDN has."""
    name, version = path.name.split("-")[:2]
    file = io.BytesIO()
    with zipfile.ZipFile(path) as source, zipfile.ZipFile(file, "w") as target:
        for member in source.namelist():
            data = source.read(member)
            if member.endswith("/WHEEL"):
                data = re.sub(rb"Tag: .*", b"Tag: py3-none-any", data)
            if not member.endswith(".so"):
                target.writestr(member, data)
    return {f"{name}-{version}-py3-none-any.whl": file.getvalue()}
