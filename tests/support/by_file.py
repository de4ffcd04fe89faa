"""Share the files of a run among its processes: one file after the other, with little work for each of many tests."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

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
