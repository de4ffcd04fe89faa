"""Read image files with Pillow, within a limit of pixels, and convert images to RGB."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO

import numpy as np

from tallow.errors import ImageError, MissingPackageError
from tallow.io.regular import regular

MAX_PIXELS = 89_478_485  # Pillow's own limit, above which it warns: an image of 256 MB
# The pixels times the scans of a JPEG. Encoders write up to 12 scans; 120 bytes may hold one that changes nothing.
MAX_SCANNED = 20 * MAX_PIXELS
TILE_WIDTH, TILE_LENGTH = 322, 323  # tags of TIFF: a tile may be larger than the image
FORMATS = ("JPEG", "PNG", "WEBP", "GIF", "BMP", "TIFF")  # not EPS, for which Pillow runs Ghostscript
# The brands of files in the container of ISO/IEC 14496-12, and the format that Pillow or a plugin of it has for each.
BRANDS = {b"avif": "AVIF", b"avis": "AVIF"}
BRANDS |= dict.fromkeys((b"heic", b"heix", b"hevc", b"hevx", b"heim", b"heis", b"mif1", b"msf1"), "HEIF")
CONVERT = "open it in an image viewer to check it, and save it as PNG or JPEG"


def pillow(name: str) -> Any:
    """Return `PIL.Image`.

    Args:    name: of the caller, for the error
    Raises:  MissingPackageError
    """
    try:
        from PIL import Image  # optional: the extra `image`
    except ImportError as error:
        raise MissingPackageError("pillow", name, "image") from error
    return Image


def read_image(path: str | os.PathLike[str]) -> Any:
    """Return a JPEG, PNG, WebP, GIF, BMP or TIFF as a Pillow image in RGB, upright according to its EXIF orientation.
    Pillow 11.3 and later read AVIF too, and the package pillow-heif HEIC.

    Opacity is dropped, as `load_image` of transformers does. To put transparent parts on white, open the file with
    Pillow, and pass the image to `as_rgb` or to an `ImageProcessor`.

    Raises:  ImageError for a file that is damaged, truncated, not an image, or of more than 89 million pixels, which is
             checked before they are decoded; of an animation or several pages only the first is;
             MissingPackageError; OSError
    """
    with open(path, "rb", opener=regular) as file:
        return _read(file, os.fspath(path), "read_image")


def decode_image(data: bytes, name: str = "the image in memory") -> Any:
    """Return the image that a file's bytes hold; as `read_image`.

    Args:  name: of the file, in errors
    """
    return _read(io.BytesIO(data), name, "decode_image")


def _read(file: BinaryIO, name: str, caller: str) -> Any:
    with decoded(file, name, caller) as picture:
        return _eight_bits(_upright(picture), name).convert("RGB")


@contextmanager
def decoded(file: BinaryIO, name: str, caller: str, more: tuple[str, ...] = ()) -> Iterator[Any]:
    """Open and decode the first image of a file with Pillow, after a look at its size.

    Args:
        name: of the file, in errors.
        caller: as `pillow`.
        more: Pillow's names of formats beyond `FORMATS`.

    Raises:  as `read_image`, also for errors of Pillow in the block
    """
    image = pillow(caller)
    formats, scans = (*_formats(file, name), *more), _count_scans(file)
    try:
        with image.open(file, formats=formats) as picture:
            _require_size(picture, scans, name)
            picture.load()
            yield picture
    except ImageError:
        raise
    except Exception as error:  # Pillow's decoders raise OSError, SyntaxError, ValueError, struct.error and others
        reason = str(error).partition("<")[0].strip() or type(error).__name__
        raise ImageError(f"{name} cannot be read as an image: {reason}", hint=CONVERT) from error


def _require_size(picture: Any, scans: int, name: str) -> None:
    """Raise ImageError for an image, or a tile of a TIFF, of too many pixels, and for a JPEG of too many scans."""
    tags = getattr(picture, "tag_v2", {})
    for width, height in (picture.size, (tags.get(TILE_WIDTH, 0), tags.get(TILE_LENGTH, 0))):
        if width * height > MAX_PIXELS:
            raise too_large(name, width, height)
    if scans * picture.width * picture.height > MAX_SCANNED:
        raise ImageError(f"{name} stores each of its pixels in {scans} parts", hint=CONVERT)


def _count_scans(file: BinaryIO) -> int:
    """Return how many scans a JPEG has: a progressive one refines all its pixels in each. 0 for another format."""
    is_jpeg = file.read(2) == b"\xff\xd8"
    count = file.read().count(b"\xff\xda") if is_jpeg else 0
    file.seek(0)
    return count


def too_large(name: str, width: int, height: int) -> ImageError:
    """Return the error for an image of too many pixels."""
    return ImageError(f"{name}: {width} by {height} pixels; the limit is {MAX_PIXELS}", hint="resize or crop it first")


def as_rgb(image: Any) -> Any:
    """Return a Pillow image in RGB, with transparent parts on white.

    Raises:  ImageError for grey levels that are negative, not finite, or floats above 255
    """
    if "A" not in image.getbands() and image.info.get("transparency") is None:
        return _eight_bits(image, "the image").convert("RGB")
    image = image.convert("RGBA")
    white = pillow("as_rgb").new("RGBA", image.size, (255, 255, 255, 255))
    white.alpha_composite(image)
    return white.convert("RGB")


def _formats(file: BinaryIO, name: str) -> tuple[str, ...]:
    """Return the formats to try, and prepare the plugin of the one that needs it."""
    head = file.read(12)
    file.seek(0)
    kind = BRANDS.get(head[8:]) if head[4:8] == b"ftyp" else None
    if kind is None:
        return FORMATS
    if kind == "HEIF":
        try:
            import pillow_heif  # optional, in no extra: its codecs have other licences
        except ImportError as error:
            raise MissingPackageError("pillow-heif", f"reading {name}, a HEIC image,", "heif") from error
        pillow_heif.register_heif_opener()
    if kind not in pillow("read_image").registered_extensions().values():
        raise ImageError(
            f"{name} is an {kind} image, which this Pillow cannot read", hint="install Pillow 11.3 or newer"
        )
    return (kind,)


def _upright(picture: Any) -> Any:
    from PIL import ImageOps

    try:
        return ImageOps.exif_transpose(picture)
    except Exception:  # as many kinds as Pillow's decoders raise. The pixels are good; an orientation there is not
        return picture


def _eight_bits(image: Any, name: str) -> Any:
    """Return an image of grey levels in 16 bits, 32 bits or floats with levels from 0 to 255; any other as it is.
    Pillow would clip them.

    16 bits lose the lower 8, as Pillow reads colours of 16 bits. 32 bits are taken as the fewest of 8, 16 and 31 that
    hold all levels; floats from 0 to 1 as shares of white, others as levels.
    """
    if image.mode not in ("I", "F") and not image.mode.startswith("I;16"):
        return image
    levels = np.asarray(image)
    least, most = levels.min(initial=0), levels.max(initial=0)  # NaN if there is one
    if not (least >= 0 and most < (256 if image.mode == "F" else np.inf)):
        raise ImageError(
            f"{name} has grey levels from {least:g} to {most:g}", hint="scale them to 0 to 255, and save it as PNG"
        )
    if image.mode == "F":
        levels = np.rint(levels * 255) if most <= 1 else np.rint(np.minimum(levels, 255))
    elif image.mode != "I" or most >= 256:
        levels = levels >> (8 if most < 1 << 16 else 23)
    return pillow("as_rgb").fromarray(levels.astype(np.uint8))
