"""Read image files with Pillow, within a limit of pixels."""

from __future__ import annotations

import os
from typing import Any

from tallow.errors import ImageError, MissingPackageError

MAX_PIXELS = 89_478_485  # Pillow's own limit, above which it warns: an image of 256 MB
FORMATS = ("JPEG", "PNG", "WEBP", "GIF", "BMP", "TIFF")  # not EPS, for which Pillow runs Ghostscript
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
    """Return a JPEG, PNG, WebP, GIF, BMP or TIFF as a Pillow image, upright according to its EXIF orientation.

    Raises:  ImageError for a file that is damaged, truncated, not an image, or of more than 89 million pixels;
             MissingPackageError; OSError
    """
    image = pillow("read_image")
    from PIL import ImageOps

    with open(path, "rb") as file:
        try:
            with image.open(file, formats=FORMATS) as picture:
                if picture.width * picture.height > MAX_PIXELS:
                    raise too_large(os.fspath(path), picture.width, picture.height)
                picture.load()
                return ImageOps.exif_transpose(picture)
        except ImageError:
            raise
        except Exception as error:  # Pillow's decoders raise OSError, SyntaxError, ValueError, struct.error and others
            reason = str(error).partition("<")[0].strip() or type(error).__name__
            raise ImageError(f"{os.fspath(path)} cannot be read as an image: {reason}", hint=CONVERT) from error


def too_large(name: str, width: int, height: int) -> ImageError:
    """Return the error for an image of too many pixels."""
    return ImageError(f"{name}: {width} by {height} pixels; the limit is {MAX_PIXELS}", hint="resize or crop it first")


def as_rgb(image: Any) -> Any:
    """Return a Pillow image in RGB, with transparent parts on white."""
    if "A" not in image.getbands() and image.info.get("transparency") is None:
        return image.convert("RGB")
    image = image.convert("RGBA")
    white = pillow("as_rgb").new("RGBA", image.size, (255, 255, 255, 255))
    white.alpha_composite(image)
    return white.convert("RGB")
