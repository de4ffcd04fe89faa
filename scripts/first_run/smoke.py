"""First checks of a GPU: it is visible, it computes, and it runs one of tallow's kernels.

    python -m first_run.smoke RESULTS

Each check appends a line to the file of results, in the format of a test. The first failure ends the run.
"""

from __future__ import annotations

import json
import platform
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path


def versions() -> str:
    import cupy
    import numpy

    import tallow as tl

    runtime = cupy.cuda.runtime
    return (
        f"Python {platform.python_version()}, NumPy {numpy.__version__}, CuPy {cupy.__version__}, tallow "
        f"{tl.__version__}; CUDA runtime {runtime.runtimeGetVersion()}, driver {runtime.driverGetVersion()}"
    )


def device() -> str:
    import tallow as tl

    free, total = tl.cuda.mem_get_info()
    capability = ".".join(map(str, tl.cuda.get_device_capability()))
    return f"{tl.cuda.get_device_name()}, sm_{capability}, {free / 2**30:.1f} of {total / 2**30:.1f} GiB free"


def add() -> str:
    import tallow as tl

    x = tl.arange(1000.0).to("cuda")
    assert (x + x).sum().item() == 999_000.0
    return "x + x, and its sum"


def matmul() -> str:
    import tallow as tl

    for dtype in (tl.float32, tl.bfloat16):
        a = tl.full((64, 32), 0.5, dtype=dtype, device="cuda")
        b = tl.full((32, 16), 0.25, dtype=dtype, device="cuda")
        assert ((a @ b).float().cpu() == 4.0).all()
    return "float32 and bfloat16, by cuBLAS"


def kernel() -> str:
    import tallow as tl
    from tallow import kernels

    started = time.perf_counter()
    x = tl.randn(64, 1000).to("cuda")
    with kernels.require("cuda"):
        y = tl.nn.functional.rms_norm(x, (1000,))
    tl.testing.assert_close(y.cpu(), tl.nn.functional.rms_norm(x.cpu(), (1000,)), rtol=1e-5, atol=1e-5)
    return f"rms_norm, compiled and run in {time.perf_counter() - started:.1f} s"


CHECKS: tuple[Callable[[], str], ...] = (device, versions, add, matmul, kernel)  # the device reports what is missing


def main(results: Path) -> int:
    for check in CHECKS:
        started = time.perf_counter()
        try:
            line = {"test": check.__name__, "outcome": "passed", "message": check()}
        except Exception as error:
            traceback.print_exc()
            line = {"test": check.__name__, "outcome": "failed", "message": f"{type(error).__name__}: {error}"}
        line["seconds"] = time.perf_counter() - started  # type: ignore[assignment]
        print(f"{line['test']}: {line['message']}", flush=True)
        with results.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
        if line["outcome"] == "failed":
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
