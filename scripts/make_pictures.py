#!/usr/bin/env python3
"""Draw web/front/pictures from web/page/flame.svg: icons of the site, and the card that links to it show.

    python scripts/make_pictures.py [OUT]

Needs Playwright, Chromium and Pillow (extra test). The pixels depend on the fonts of this computer, so the files are
committed.
"""

from __future__ import annotations

import argparse
import base64
import io
from pathlib import Path

import prerequisites
from PIL import Image
from playwright.sync_api import sync_playwright

WEB = Path(__file__).resolve().parents[1] / "web"
GROUND = "#faf6ee"
COLORS = 64
ICON = """
<style>
  body {{ margin: 0; width: {side}px; height: {side}px; display: grid; place-items: center; background: {ground}; }}
  img {{ height: {height}px; }}
</style>
<img src="{flame}" />
"""
CARD = """
<style>
  body {{
    margin: 0; width: 1200px; height: 630px; display: flex; align-items: center; gap: 70px; padding: 0 90px;
    box-sizing: border-box; background: {ground}; color: #2b2118;
  }}
  img {{ height: 330px; margin: 0 -60px; }}
  div {{ white-space: nowrap; font: 400 46px/1.3 "P052", "URW Palladio L", Palatino, Georgia, "DejaVu Serif", serif; }}
  h1 {{ margin: 0; font-size: 120px; font-weight: 600; line-height: 1.1; letter-spacing: -3px; }}
  p {{ margin: 20px 0 0; }}
  code {{ display: block; margin-top: 34px; font: 400 30px/1.4 "DejaVu Sans Mono", monospace; color: #a94b06; }}
</style>
<img src="{flame}" />
<div><h1>tallow</h1><p>Deep learning in a browser tab,<br />and on a GPU</p><code>import tallow as tl</code></div>
"""
# Side in pixels, height of the flame, ground. Launchers cut a maskable icon to any shape around its middle.
ICONS = {
    "icon-192.png": (192, 168, "transparent"),
    "icon-512.png": (512, 448, "transparent"),
    "maskable-512.png": (512, 290, GROUND),
    "touch.png": (180, 132, GROUND),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, nargs="?", default=WEB / "front" / "pictures")
    out: Path = parser.parse_args().out
    out.mkdir(exist_ok=True)
    flame = "data:image/svg+xml;base64," + base64.b64encode((WEB / "page" / "flame.svg").read_bytes()).decode()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=prerequisites.chromium(), args=["--no-sandbox"])
        page = browser.new_page()
        for name, (side, height, ground) in ICONS.items():
            page.set_viewport_size({"width": side, "height": side})
            page.set_content(ICON.format(side=side, height=height, ground=ground, flame=flame))
            _save(page.screenshot(omit_background=True), out / name)
        page.set_viewport_size({"width": 1200, "height": 630})
        page.set_content(CARD.format(ground=GROUND, flame=flame))
        _save(page.screenshot(), out / "card.png")
        browser.close()


def _save(png: bytes, path: Path) -> None:
    """Write a picture with a palette, which takes a third of the bytes."""
    Image.open(io.BytesIO(png)).quantize(COLORS, Image.Quantize.FASTOCTREE).save(path, optimize=True)


if __name__ == "__main__":
    main()
