"""Share the files of a run among its processes: one file after the other, with little work for each of many tests."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pytest
from xdist.scheduler import LoadFileScheduling
from xdist.workermanage import WorkerController


class _Names(list[str]):
    """A list that finds an item at once."""

    def __init__(self, names: Iterable[str]) -> None:
        super().__init__(names)
        self._places = {name: place for place, name in enumerate(self)}

    def index(self, name: str, *_: Any) -> int:
        return self._places[name]


class ByFile(LoadFileScheduling):
    """`--dist=loadfile`, which for each test looks through the names of all tests, and counts those that have ended."""

    def add_node_collection(self, node: WorkerController, collection: Sequence[str]) -> None:
        super().add_node_collection(node, collection)
        self.registered_collections[node] = _Names(collection)

    def mark_test_complete(self, node: WorkerController, item_index: int, duration: float = 0) -> None:
        super().mark_test_complete(node, item_index, duration)
        files = self.assigned_work[node]
        for file in [file for file, done in files.items() if all(done.values())]:
            del files[file]


QUICK_S = 0.005  # shorter than what --durations lists


def send_less(config: pytest.Config) -> None:
    """Send no reports of setups and teardowns that passed at once, nor that a test starts: nobody reads them.

    They are half of what the processes of a run send, 0.8 ms of processor time for each test.
    """
    # Not an instance of xdist.remote.WorkerInteractor: execnet runs that module under another name.
    (process,) = (each for each in config.pluginmanager.get_plugins() if hasattr(each, "sendevent"))
    send = process.sendevent

    def send_event(name: str, **content: Any) -> None:
        if name != "logstart" and not (name == "testreport" and _is_idle(content["data"])):
            send(name, **content)

    process.sendevent = send_event


def _is_idle(report: dict[str, Any]) -> bool:
    """Return whether a report says nothing but that a setup or teardown passed at once."""
    is_quick = report["when"] != "call" and report["outcome"] == "passed" and report["duration"] < QUICK_S
    return is_quick and not report["sections"] and not report["user_properties"]
