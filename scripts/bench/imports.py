"""Time of `import tallow` after `import numpy`, in a fresh interpreter.

Claim: natively at most 60 ms.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from typing import Any

NAME = "import"
IN_BROWSER = sys.platform == "emscripten"
CODE = """
from time import perf_counter as now
start = now(); import numpy; middle = now(); import tallow; end = now()
print(middle - start, end - middle)
"""


def measure(options: dict[str, Any]) -> dict[str, Any]:
    if IN_BROWSER:  # a tab has no processes: this one has imported NumPy, and must not have imported tallow
        assert "tallow" not in sys.modules
        start = time.perf_counter()
        import tallow

        return {
            "rows": [{"import": "tallow", "ms": (time.perf_counter() - start) * 1e3}],
            "notes": ["once, uncompiled"],
        }
    env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    runs = [
        subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True, env=env)
        for _ in range(options["repeats"] * 3)
    ]
    numpy, tallow = (
        [float(text) * 1e3 for text in column] for column in zip(*(run.stdout.split() for run in runs), strict=True)
    )
    rows = [
        {"import": name, "best ms": min(times), "median ms": statistics.median(times)}
        for name, times in (("numpy", numpy), ("tallow after numpy", tallow))
    ]
    return {"rows": rows, "notes": [f"{len(runs)} fresh interpreters, compiled modules in the cache"]}
