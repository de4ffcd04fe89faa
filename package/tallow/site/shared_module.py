"""Give sites a copy of Pyodide's main module with a shared memory.

Pages could change the module as it loads (web/threads/shared-memory.js), as they do with that of the CDN. But browsers
keep the machine code of a module only if it comes unchanged from a URL; compiling it again takes a second of processor
time.
"""

from __future__ import annotations

from pathlib import Path

from tallow.site.node import run_in_node

SCRIPT = Path(__file__).with_suffix(".mjs")
TIMEOUT_S = 60


def write_shared_module(source: Path, target: Path, rewriter: Path) -> bool:
    """Write the copy. Without Node 20 or later nothing is written.

    Args:
        rewriter: web/threads/memory-type.js.

    Returns:  whether `target` was written
    """
    if run_in_node(SCRIPT, rewriter.resolve().as_uri(), str(source), str(target), timeout_s=TIMEOUT_S):
        return True
    target.unlink(missing_ok=True)
    return False
