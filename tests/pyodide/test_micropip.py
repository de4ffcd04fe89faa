"""The pure wheel installs from its address in any Pyodide, as docs/browser.md says for JupyterLite and others."""

from __future__ import annotations

import functools
import http.server
import subprocess
import threading
from pathlib import Path

HERE = Path(__file__).parent


def test_micropip_installs_the_wheel(node: str, pyodide_dir: Path, pure_wheel: Path) -> None:
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=pure_wheel.parent)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}/{pure_wheel.name}"
        command = [node, HERE / "install_by_micropip.mjs", pyodide_dir, url]
        process = subprocess.run(command, capture_output=True, text=True, timeout=600)
        server.shutdown()
    assert process.returncode == 0, process.stderr
    value, kernels = process.stdout.splitlines()[-1].split(maxsplit=1)  # micropip prints what it loads
    assert float(value) == 3.0
    assert kernels.startswith("wasm ")
    assert "1 thread: no threads are offered" in kernels
