"""Pytest plugin of scripts/gpu_first_run: writes results that survive a crash, and stops after a GPU fault.

    pytest -p support.gpu_worker --results FILE [--shard I/N]

Each test appends two JSON lines to FILE: when it starts, and its outcome. Tests that FILE already lists are deselected,
so running the same command again continues after the test that crashed the process. With --shard, it runs only the I-th
of N parts of the tests.

CUDA may report a fault at a later call, and after some faults (an illegal address, a failed launch) every further call
of the process fails. So the plugin synchronizes with the GPU after every test. If that raises, the test is recorded as
the cause and the process exits with status `BROKEN`.
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
    parser.addoption("--shard", default="0/1", metavar="I/N", help="run the tests whose number modulo N is I")


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(Worker(config.getoption("--results"), _synchronize, config.getoption("--shard")))


def _synchronize() -> None:
    import tallow as tl  # import late: pytest sets sys.path first

    if tl.cuda.is_available():
        tl.cuda.synchronize()


class Worker:
    """Pytest hooks that record results.

    Args:
        synchronize: waits for the GPU and raises if a kernel failed.
        shard: which tests run: "I/N" for those whose number in the collection is I modulo N.
    """

    def __init__(self, results: Path, synchronize: Callable[[], None], shard: str) -> None:
        self._results = results
        self._index, self._shards = map(int, shard.split("/"))
        self._synchronize = synchronize
        self._worst: dict[str, Any] = {}

    @pytest.hookimpl(trylast=True)  # after -m and -k
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        listed = {line["test"] for line in _lines(self._results)}
        selected = [item for item in items[self._index :: self._shards] if item.nodeid not in listed]
        if len(selected) < len(items):
            config.hook.pytest_deselected(items=set(items).difference(selected))
            items[:] = selected
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
            os._exit(BROKEN)  # normal interpreter shutdown calls CUDA and might hang
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
    """Return the entries of the tests in FILE. A truncated last line is ignored."""
    if not path.exists():
        return []
    lines = []
    for text in path.read_text(encoding="utf-8").splitlines():
        try:
            lines.append(json.loads(text))
        except json.JSONDecodeError:
            continue
    return [line for line in lines if "test" in line]
