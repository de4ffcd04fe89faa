"""Memory and speed of the story page in Chromium with a GGUF file from the disk.

    python -P scripts/bench/story_page.py SITE FILE.gguf      # SITE: a folder of scripts/build_site.py --pyodide local

Goal, nearly reached: with a Qwen3 0.6B in Q4_K_M the tab holds at most 0.75 GB of memory for itself, and generates 8
tokens per second.
"""

from __future__ import annotations

import sys
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "package"), str(ROOT), str(ROOT / "scripts")]

import prerequisites  # noqa: E402 - the paths above come first
from playwright.sync_api import Page, expect, sync_playwright  # noqa: E402

from bench import report  # noqa: E402
from bench.places import CHROMIUM_FLAGS  # noqa: E402
from tallow.cli.static_server import SiteServer  # noqa: E402

WAIT_MS = 600_000
STEPS = 64


def main() -> None:
    site, file = map(Path, sys.argv[1:])
    print(report.machine())
    server = SiteServer(site, host="127.0.0.1", port=0, models={})
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=prerequisites.chromium(), args=CHROMIUM_FLAGS)
        page = chromium.new_page()
        page.set_default_timeout(WAIT_MS)
        page.goto(f"{server.url}wasm_examples/llama2c/index.html")
        memory = Memory(page)
        memory.start()
        _ready(page, "Ready.")
        print(f"{page.get_by_test_id('model-name').text_content()}\n  peak of the tab: {memory}")
        page.get_by_test_id("model-file").set_input_files(file)
        expect(page.get_by_test_id("model-name")).to_contain_text(file.name, timeout=WAIT_MS)
        _ready(page, "Ready.")
        print(f"{page.get_by_test_id('model-name').text_content()}\n  peak of the tab: {memory}")
        for _ in range(3):
            page.get_by_test_id("steps").fill(str(STEPS))
            page.get_by_test_id("temperature").fill("0")
            page.get_by_test_id("generate").click()
            _ready(page, "Done.")
            print(f"  {' '.join(page.get_by_test_id('stats').inner_text().split())}")
        print(f"  peak of the tab: {memory}")
        chromium.close()


def _ready(page: Page, text: str) -> None:
    expect(page.get_by_test_id("status")).to_contain_text(text, timeout=WAIT_MS)


class Memory(threading.Thread):
    """Samples the memory that Chromium's largest renderer holds for itself: without the code that it maps."""

    def __init__(self, page: Page) -> None:
        super().__init__(daemon=True)
        session = page.context.browser.new_browser_cdp_session()  # type: ignore[union-attr]
        processes = session.send("SystemInfo.getProcessInfo")["processInfo"]
        self._ids = [process["id"] for process in processes if process["type"] == "renderer"]
        self.peak_bytes = 0

    def run(self) -> None:
        while True:
            self.peak_bytes = max(self.peak_bytes, *map(_own_bytes, self._ids))
            time.sleep(0.02)

    def __str__(self) -> str:
        return f"{self.peak_bytes / 1e9:.2f} GB"


def _own_bytes(process: int) -> int:
    try:
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
    except FileNotFoundError:
        return 0
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith(("RssAnon:", "RssShmem:")))


if __name__ == "__main__":
    main()
