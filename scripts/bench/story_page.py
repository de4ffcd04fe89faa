"""Memory and speed of the story page in Chromium with a GGUF file from the disk.

    python -P scripts/bench/story_page.py SITE FILE.gguf      # SITE: a folder of scripts/build_site.py --pyodide local

Goal: with a Qwen3 0.6B in Q4_K_M the tab holds at most 0.75 GB of memory for itself, and generates 8
tokens per second.
"""

from __future__ import annotations

import sys
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "package"), str(ROOT), str(ROOT / "scripts")]

from playwright.sync_api import Page, expect  # noqa: E402 - the paths above come first

from bench import report  # noqa: E402
from bench.pages import WAIT_MS, expect_status, opened  # noqa: E402

STEPS = 64


def main() -> None:
    site, file = map(Path, sys.argv[1:])
    print(report.machine())
    with opened(site, "wasm_examples/llama2c/index.html") as (page, _):
        memory = Memory(page)
        memory.start()
        expect_status(page, "Ready.")
        print(f"{page.get_by_test_id('model-name').text_content()}\n  peak of the tab: {memory}")
        page.get_by_test_id("model-file").set_input_files(file)
        expect(page.get_by_test_id("model-name")).to_contain_text(file.name, timeout=WAIT_MS)
        expect_status(page, "Ready.")
        print(f"{page.get_by_test_id('model-name').text_content()}\n  peak of the tab: {memory}")
        for _ in range(3):
            page.get_by_test_id("steps").fill(str(STEPS))
            page.get_by_test_id("temperature").fill("0")
            page.get_by_test_id("generate").click()
            expect_status(page, "Done.")
            print(f"  {' '.join(page.get_by_test_id('stats').inner_text().split())}")
        print(f"  peak of the tab: {memory}")


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
