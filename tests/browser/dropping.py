"""Drop files on a page; Playwright has no action for this."""

from __future__ import annotations

import base64
from pathlib import Path

from playwright.sync_api import Page

DROP = """
(files) => {
  const dataTransfer = new DataTransfer();
  for (const [name, base64] of Object.entries(files)) {
    const bytes = Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
    dataTransfer.items.add(new File([bytes], name));
  }
  const event = (type) => new DragEvent(type, { dataTransfer, bubbles: true, cancelable: true });
  document.body.dispatchEvent(event("dragover"));
  document.body.dispatchEvent(event("drop"));
}
"""


def drop(page: Page, files: dict[str, Path]) -> None:
    """Drop all files at once, with the keys as names."""
    page.evaluate(DROP, {name: base64.b64encode(path.read_bytes()).decode() for name, path in files.items()})
