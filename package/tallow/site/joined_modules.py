"""Join the JavaScript modules of a worker in one file: a browser fetches one instead of twenty, most after another."""

from __future__ import annotations

import re
from pathlib import Path

IMPORT = re.compile(
    r'^import (?:\* as (?P<all>\w+)|(?P<names>\{[^}]*\})) from "\./(?P<file>[\w-]+\.js)";$', re.MULTILINE
)
EXPORT = re.compile(r"^export (?=(?:async )?(?:function\*?|class|const) (\w+))", re.MULTILINE)
OTHER = re.compile(r"^(?:import|export)\b(?!.* from \$).*", re.MULTILINE)  # but for scripts in template strings


def join_modules(entry: Path) -> str:
    """Return a module that does what `entry` does, without importing the other modules of its folder.

    Each module becomes a function that returns its exports, in the order in which they would run.

    Raises:  ValueError if a module imports or exports in another form than those of `web/`
    """
    joined: dict[str, str] = {}

    def add(name: str) -> None:
        if name in joined:
            return
        text = (entry.parent / name).read_text(encoding="utf-8")
        for found in IMPORT.finditer(text):
            add(found["file"])
        exports = ", ".join(EXPORT.findall(text))
        body = EXPORT.sub("", IMPORT.sub(_as_constants, text))
        if other := OTHER.search(body):
            raise ValueError(f"{name}: cannot join {other[0]!r}")
        body = body.replace("import.meta.url", f'new URL("./{name}", import.meta.url).href')
        joined[name] = f"const {_variable(name)} = (() => {{\n{body}\nreturn {{ {exports} }};\n}})();\n"

    add(entry.name)
    return "".join(joined.values())


def _as_constants(found: re.Match[str]) -> str:
    names = found["all"] or found["names"].replace(" as ", ": ")
    return f"const {names} = {_variable(found['file'])};"


def _variable(name: str) -> str:
    return f"${name.removesuffix('.js').replace('-', '_')}"
