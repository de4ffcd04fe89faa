"""Emoji as pictures: of Debian's font, and of sets of other designers, so that other systems' emoji are found too.

Noto Color Emoji is drawn by Pillow at 109 pixels, the size of its bitmaps. The other sets are SVG in npm packages of
Iconify, which resvg draws.
"""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import npm_package
from npm_package import NpmFile, NpmPackage
from PIL import Image, ImageDraw, ImageFont

from tallow.errors import TallowError

from .kinds import FONT

FONT_SIZE = 109  # the only one of its bitmaps
CANVAS = 160
SIDE = 128  # the longest side of a glyph
PREFIX = "@iconify-json/"


@dataclass(frozen=True)
class EmojiSet:
    """A set of emoji in a package of Iconify.

    Attributes:
        icons, chars: the SHA-256 of icons.json and of chars.json.
    """

    name: str
    version: str
    sha512: str
    icons: str
    chars: str

    @property
    def package(self) -> NpmPackage:
        hashes = {"icons": self.icons, "chars": self.chars}
        files = tuple(NpmFile(f"{part}.json", digest, f"{self.name}.{part}.json") for part, digest in hashes.items())
        return NpmPackage(PREFIX + self.name, self.version, self.sha512, files)


SETS = (
    EmojiSet(
        "twemoji",
        "1.2.5",
        "uKpuIEV0v6K5BW3Mjdyl+XKFVAbbcPxAgifKvEMtZoUZB5+YiY5zaMm2uNNCxyXzAWU9yNLlj41WU6/mvgALsw==",
        "5d5d820790565b764f2728675d487c9ee4c1fc83916d8567d5aca8ba7527c242",
        "8e6a83d5a3ac185b2446154b9c4ee07c983bd4a5b2a21aa4b9ff04af9831eefe",
    ),
    EmojiSet(
        "fluent-emoji-flat",
        "1.2.6",
        "RY47RgPb47fYUiyrA64sIOL0+UU02s29sXpNBbIQRBUlPlfNFTKUmZDERGuxDs/7yNGWqQYvuaSYM1M4fRXlUw==",
        "f5f4cf457c0db2ad5a2e42e033e02e0c87d10e43d0164cfffb3bb84914970a63",
        "7f084c5a95807edb4702a7c9f6f18e74d59026d1c34ceb8cae85df0b9a9f0a10",
    ),
)
UNSEEN = EmojiSet(  # for evaluation only
    "openmoji",
    "1.2.29",
    "vXdhkqcXVSO6suy+m9LbcUM3OdVyuNOtpV8/als/WqfkQIRxevL5Geb/g+6GH/Qwnq1OqksEmaDGTCmZ5nFKJQ==",
    "7075331faab544067dbff4236471dd378bb5410aa05799a8a343c9ebf5c5984c",
    "8583c4c65723c22c043a50a27038c43d3d12de336ad409872b23356f4c3e3825",
)


def of_font(emoji: Sequence[str], font: Path = FONT) -> list[Image.Image]:
    """Return glyphs of Noto Color Emoji.  Raises: TallowError if the font is missing"""
    if not font.exists():
        raise TallowError(f"{font} is missing", hint="apt-get install fonts-noto-color-emoji")
    loaded = ImageFont.truetype(str(font), FONT_SIZE)
    return [_of_font(each, loaded) for each in emoji]


def of_set(emoji: Sequence[str], emoji_set: EmojiSet, cache: Path) -> list[Image.Image | None]:
    """Return glyphs of a set; None for one that it lacks.

    Args:    cache: folder for the packages
    Raises:  FetchError if the download fails; TallowError without resvg-py
    """
    try:
        import resvg_py
    except ImportError:
        raise TallowError("emoji of other designers need resvg-py", hint="pip install resvg-py") from None
    package = emoji_set.package
    folder = npm_package.fetch(cache / f"{emoji_set.name}-{emoji_set.version}", [package])
    icons, chars = (json.loads((folder / file.name).read_text(encoding="utf-8")) for file in package.files)
    drawn: list[Image.Image | None] = []
    for each in emoji:
        svg = _svg(icons, chars, each)
        drawn.append(None if svg is None else _trimmed(_opened(bytes(resvg_py.svg_to_bytes(svg, width=SIDE)))))
    return drawn


def _svg(icons: Mapping[str, object], chars: Mapping[str, str], emoji: str) -> str | None:
    name = chars.get(f"{ord(emoji):x}") or chars.get(f"{ord(emoji):x}-fe0f")
    found: dict[str, dict[str, object]] = icons["icons"]  # type: ignore[assignment]
    if name not in found:
        return None
    icon = {"width": icons.get("width", 16), "height": icons.get("height", 16), **found[name]}
    box = f"{icon.get('left', 0)} {icon.get('top', 0)} {icon['width']} {icon['height']}"
    return f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{box}">{icon["body"]}</svg>'


def _opened(data: bytes) -> Image.Image:
    return Image.open(io.BytesIO(data)).convert("RGBA")


def _of_font(emoji: str, font: ImageFont.FreeTypeFont) -> Image.Image:
    canvas = Image.new("RGBA", (CANVAS, CANVAS))
    ImageDraw.Draw(canvas).text((10, 10), emoji, font=font, embedded_color=True)
    return _trimmed(canvas)


def _trimmed(picture: Image.Image) -> Image.Image:
    """Return the part that is not transparent, SIDE pixels long."""
    cut = picture.crop(picture.getchannel("A").point(lambda a: 255 * (a > 24)).getbbox())
    scale = SIDE / max(cut.size)
    return cut.resize((max(1, round(cut.width * scale)), max(1, round(cut.height * scale))), Image.Resampling.LANCZOS)
