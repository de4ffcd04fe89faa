"""tests/browser/hanging.py: a test that hangs fails, and those after it run."""

from __future__ import annotations

import subprocess
import sys

import pytest
from playwright.sync_api import Page
from tests.browser.hanging import ended_after


def test_browser_that_does_not_answer(page: Page) -> None:
    with pytest.raises(TimeoutError, match="after 1 s"), ended_after(1):
        page.evaluate("() => new Promise(() => {})")
    assert page.evaluate("1 + 1") == 2


def test_program_that_does_not_end() -> None:
    with pytest.raises(TimeoutError, match="after 1 s"), ended_after(1):
        subprocess.run([sys.executable, "-c", "import time; time.sleep(1000)"])
