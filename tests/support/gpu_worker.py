"""The pytest plugin of scripts/gpu_first_run: results that survive the process, and no test after a broken GPU.

    pytest -p support.gpu_worker --results FILE

Each test adds two lines of JSON to FILE: when it begins, and how it ended. A test that FILE has begun is left out, so
the same command again goes on behind the one that stopped the process.

CUDA reports a fault at some later call, and after some faults (an illegal address, a launch that failed) every further
call of the process fails. So the plugin waits for the GPU after every test. Where that raises, the test takes the blame
and the process ends with `BROKEN`.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

BROKEN = 86


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--results", type=Path, required=True, help="the file of JSON lines to add to")


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(Worker(config.getoption("--results"), _synchronize))


def _synchronize() -> None:
    import tallow as tl  # not before pytest has set the paths

    if tl.cuda.is_available():
        tl.cuda.synchronize()


class Worker:
    """The hooks.

    Args:  synchronize: waits for the GPU and raises what went wrong there
    """

    def __init__(self, results: Path, synchronize: Callable[[], None]) -> None:
        self._results = results
        self._synchronize = synchronize
        self._worst: dict[str, Any] = {}

    @pytest.hookimpl(trylast=True)  # behind -m and -k
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        begun = {line["test"] for line in _lines(self._results)}
        done = [item for item in items if item.nodeid in begun]
        if done:
            config.hook.pytest_deselected(items=done)
            items[:] = [item for item in items if item.nodeid not in begun]
        self._write(collected=len(items))

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self._write(test=item.nodeid, began=time.time())
        self._worst = {"outcome": "passed", "seconds": 0.0}
        result = yield
        try:
            self._synchronize()
        except Exception as error:
            message = f"{type(error).__name__}: {error}"
            self._write(test=item.nodeid, **self._worst | {"outcome": "broke the GPU", "message": message})
            os._exit(BROKEN)  # the interpreter's own end would call CUDA, and might hang
        self._write(test=item.nodeid, **self._worst)
        return result

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._worst["seconds"] += report.duration
        if report.outcome != "passed" and self._worst["outcome"] == "passed":
            text = str(report.longrepr[-1]) if isinstance(report.longrepr, tuple) else report.longreprtext
            self._worst |= {"outcome": report.outcome, "message": text[-4000:]}

    def _write(self, **line: Any) -> None:
        with self._results.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")


def _lines(path: Path) -> list[dict[str, Any]]:
    """What tests the file has; a last line that was cut off is none."""
    if not path.exists():
        return []
    lines = []
    for text in path.read_text(encoding="utf-8").splitlines():
        try:
            lines.append(json.loads(text))
        except json.JSONDecodeError:
            continue
    return [line for line in lines if "test" in line]
