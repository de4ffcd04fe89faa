"""python worker.py LIBRARY THREADS MODULE.FUNCTION ARGUMENTS...: run work on request in its own process.

The function takes the arguments and returns the work: a function of a case. Each line on stdin is a JSON list: the
number of runs, then the case. The reply is a line of JSON: the wall-clock seconds, the processor seconds, and the peak
growth of resident memory in bytes since the import of the library.
"""

from __future__ import annotations

import importlib
import json
import re
import sys
import time
from pathlib import Path


def _status_bytes(field: str) -> int:
    match = re.search(rf"{field}:\s+(\d+) kB", Path("/proc/self/status").read_text())
    return int(match[1]) * 1024 if match else 0


def main(library: str, threads: str, function: str, *arguments: str) -> None:
    importlib.import_module(library)
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(int(threads))
    module, _, name = function.rpartition(".")
    make = getattr(importlib.import_module(module), name)
    Path("/proc/self/clear_refs").write_text("5")  # reset the peak
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
