"""A stand-in for PyPI and for Pyodide's CDN, with wheels of this machine: `Index(...).serve(context)`."""

from __future__ import annotations

import hashlib
import json
import re
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
    """

    def __init__(self, wheels: Path, pyodide: Path) -> None:
        self.wheels = {path.name: path for path in wheels.glob("*.whl")}
        self.pyodide = pyodide
        self.asked: list[str] = []

    def serve(self, context: BrowserContext) -> None:
        """Answer the requests of a browser's pages. Call it before the first page starts (`hub.no_hub`)."""
        context.route("https://pypi.org/simple/**", self._project)
        context.route(f"{FILES}/**", self._file)
        context.route("https://cdn.jsdelivr.net/pyodide/**", self._package)
        context.route("**/runtime/pyodide-3*/pyodide-lock.json", self._list)

    def _project(self, route: Route) -> None:
        name = urlsplit(route.request.url).path.strip("/").rpartition("/")[2]
        self.asked.append(name)
        found = [path for path in self.wheels.values() if _project_of(path.name) == name]
        if not found:
            route.fulfill(status=404, headers=HEADERS)
            return
        files = [
            {
                "filename": path.name,
                "url": f"{FILES}/{path.name}",
                "hashes": {"sha256": hashlib.sha256(path.read_bytes()).hexdigest()},
                "size": path.stat().st_size,
            }
            for path in found
        ]
        answer = {"meta": {"api-version": "1.1"}, "name": name, "files": files}
        content_type = "application/vnd.pypi.simple.v1+json"
        route.fulfill(body=json.dumps(answer), headers={**HEADERS, "Content-Type": content_type})

    def _file(self, route: Route) -> None:
        name = unquote(urlsplit(route.request.url).path.rpartition("/")[2])
        if name in self.wheels:
            route.fulfill(path=self.wheels[name], headers=HEADERS)
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


def _project_of(wheel: str) -> str:
    return re.sub(r"[-_.]+", "-", wheel.partition("-")[0]).lower()
