"""python worker.py LIBRARY THREADS MODULE.FUNCTION ARGUMENTS...: works in a process of its own, when it is told to.

The function is given the arguments, and returns the work: a function of a case. Each line on stdin is a list of JSON,
how often to do the work and then the case; the answer is a line of JSON too: the seconds that it took, those that the
process had a processor, and by how many bytes the resident memory has grown at most since the library was imported.
"""

from __future__ import annotations

import importlib
import json
import re
import sys
import time
from pathlib import Path


def _status_bytes(field: str) -> int:
    found = re.search(rf"{field}:\s+(\d+) kB", Path("/proc/self/status").read_text())
    return int(found[1]) * 1024 if found else 0


def main(library: str, threads: str, function: str, *arguments: str) -> None:
    importlib.import_module(library)
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(int(threads))
    module, _, name = function.rpartition(".")
    make = getattr(importlib.import_module(module), name)
    Path("/proc/self/clear_refs").write_text("5")  # the high-water mark begins here
    start_bytes = _status_bytes("VmRSS")
    work = make(*arguments)
    for line in sys.stdin:
        times, *case = json.loads(line)
        start, cpu_start = time.perf_counter(), time.process_time()
        for _ in range(times):
            work(*case)
        took = {"seconds": time.perf_counter() - start, "cpu_seconds": time.process_time() - cpu_start}
        print(json.dumps(took | {"bytes": _status_bytes("VmHWM") - start_bytes}), flush=True)


if __name__ == "__main__":
    sys.path[:0] = [str(Path(__file__).resolve().parents[1])]
    main(*sys.argv[1:])
