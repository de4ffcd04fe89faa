"""Speed of the chat page in Chromium with a GGUF file that the browser keeps, and the frames of the page meanwhile.

    python -P scripts/bench/chat_page.py SITE FILE.gguf      # SITE: a folder of scripts/build_site.py --pyodide local

Goals for a model of SmolLM2-135M's shape in Q8_0: its file is read, checked and loaded at 400 MB/s, and while the model
writes, no frame of the page takes more than 50 ms.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "package"), str(ROOT), str(ROOT / "scripts")]

from playwright.sync_api import Page, expect  # noqa: E402 - the paths above come first

from bench import report  # noqa: E402
from bench.pages import WAIT_MS, expect_status, opened  # noqa: E402

LOADS = 5
TOKENS = 300
FRAME_MS = 50
# Notes the time of each frame, and the tasks of the page's thread that took longer than 50 ms.
WATCH = """
() => {
  window.frames = [];
  window.tasks = [];
  const frame = (now) => { window.frames.push(now); requestAnimationFrame(frame); };
  requestAnimationFrame(frame);
  new PerformanceObserver((list) => window.tasks.push(...list.getEntries().map(({ duration }) => duration)))
    .observe({ type: "longtask" });
}
"""
READ = """
() => {
  const between = window.frames.slice(1).map((time, i) => time - window.frames[i]);
  const result = { frames: between, tasks: window.tasks };
  window.frames = [];
  window.tasks = [];
  return result;
}
"""


def main() -> None:
    site, file = map(Path, sys.argv[1:])
    size = file.stat().st_size
    print(report.machine())
    with opened(site, "wasm_examples/chat/", {file.name: file}) as (page, address):
        expect_status(page, "Ready.")
        page.evaluate(WATCH)
        page.evaluate("for (const it of document.querySelectorAll('details')) it.open = true")
        print(f"download: {size / 1e6 / _load(page, f'{address}models/{file.name}'):.0f} MB/s")
        rates = [size / 1e6 / _load(page, f"{address}models/{file.name}") for _ in range(LOADS)]
        print(f"from the browser's storage: {max(rates):.0f} MB/s; {', '.join(f'{rate:.0f}' for rate in rates)}")
        _print_frames("loading", page.evaluate(READ))
        page.get_by_test_id("max-tokens").fill(str(TOKENS))
        page.get_by_test_id("prompt").fill("Tell me all you know about candles, wicks, wax and tallow.")
        page.get_by_test_id("send").click()
        expect(page.get_by_test_id("figures").last).to_contain_text("tokens/s", timeout=WAIT_MS)
        page.evaluate(READ)
        expect_status(page, "Done.")
        _print_frames("writing", page.evaluate(READ))
        print(page.get_by_test_id("figures").last.inner_text())


def _load(page: Page, address: str) -> float:
    """Load a model; return the seconds."""
    shown = page.locator("dt:text-is('Model load') + dd")
    shown.evaluate("(it) => { it.textContent = ''; }")
    page.get_by_test_id("model-url").fill(address)
    page.get_by_test_id("load-url").click()
    expect(shown).not_to_be_empty(timeout=WAIT_MS)
    expect_status(page, "Ready.")
    return float(shown.inner_text().split()[0])


def _print_frames(state: str, seen: dict[str, Any]) -> None:
    frames, tasks = sorted(seen["frames"]), seen["tasks"]
    slow = sum(frame > FRAME_MS for frame in frames)
    print(
        f"{state}: {len(frames)} frames, the longest {frames[-1]:.0f} ms, {slow} above {FRAME_MS} ms; "
        f"{len(tasks)} tasks above {FRAME_MS} ms{f', the longest {max(tasks):.0f} ms' if tasks else ''}"
    )


if __name__ == "__main__":
    main()
