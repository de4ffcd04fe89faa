"""Give sites a copy of Pyodide's main module with a shared memory.

Pages could change the module as it loads (web/shared-memory.js), as they do with that of the CDN. But browsers keep the
machine code of a module only if it comes unchanged from a URL; compiling it again takes a second of processor time.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

SCRIPT = Path(__file__).with_suffix(".mjs")
TIMEOUT_S = 60


def write_shared_module(source: Path, target: Path, rewriter: Path) -> bool:
    """Write the copy. Without Node 20.19 or later nothing is written.

    Args:
        rewriter: web/memory-type.js.

    Returns:  whether `target` was written
    """
    node = shutil.which("node")
    if node is None:
        return False
    command = [node, str(SCRIPT), rewriter.resolve().as_uri(), str(source), str(target)]
    try:
        subprocess.run(command, check=True, capture_output=True, timeout=TIMEOUT_S)
    except (OSError, subprocess.SubprocessError):
        target.unlink(missing_ok=True)
        return False
    return True
