"""python training_worker.py LIBRARY WORKLOAD THREADS: trains in a process of its own, when it is told to.

Each line on stdin is a number of steps to take; the answer is a line of JSON: the seconds that they took, and by how
many bytes the resident memory has grown at most since the library was imported.
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


def main(library: str, workload: str, threads: str) -> None:
    module = importlib.import_module(library)
    if library == "torch":
        module.set_num_threads(int(threads))
    from bench.workloads import WORKLOADS

    Path("/proc/self/clear_refs").write_text("5")  # the high-water mark begins here
    start_bytes = _status_bytes("VmRSS")
    module.manual_seed(0)
    step = WORKLOADS[workload](module)
    for line in sys.stdin:
        start = time.perf_counter()
        for _ in range(int(line)):
            step()
        seconds = time.perf_counter() - start
        print(json.dumps({"seconds": seconds, "bytes": _status_bytes("VmHWM") - start_bytes}), flush=True)


if __name__ == "__main__":
    sys.path[:0] = [str(Path(__file__).resolve().parents[1])]
    main(*sys.argv[1:])
