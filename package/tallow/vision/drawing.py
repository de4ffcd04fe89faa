"""Draw boxes, masks and labels on pictures, with Pillow."""

from __future__ import annotations

import colorsys
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tallow.errors import ArgumentError
from tallow.io.images import as_rgb, pillow
from tallow.vision.detection import Detection

OPACITY = 0.45  # of a mask
LINE, TEXT = 250, 40  # the larger side of the picture, divided by the width of a line and the height of a text
LEAST_TEXT = 11
DARK, LIGHT = (0, 0, 0), (255, 255, 255)


def draw_detections(picture: Any, detections: Sequence[Detection], *, width: int | None = None) -> Any:
    """Return a copy of a picture, in RGB, with the boxes, masks and labels of objects.

    Args:
        picture: of Pillow, or an array (height, width, 3) of uint8.
        detections: the objects; those with the best scores are drawn last, over the others.
        width: of lines, in pixels; None means by the size of the picture.

    Raises:  ArgumentError for a mask of another size; MissingPackageError without Pillow
    """
    image = as_rgb(pillow("draw_detections").fromarray(picture) if isinstance(picture, np.ndarray) else picture)
    ordered = sorted(detections, key=lambda each: each.score)
    image = _with_masks(image, ordered)
    from PIL import ImageDraw, ImageFont

    draw = ImageDraw.Draw(image)
    larger = max(image.size)
    line = max(1, larger // LINE) if width is None else width
    font = ImageFont.load_default(max(LEAST_TEXT, larger // TEXT))
    for each in ordered:
        colour = colour_of(each.label)
        left, top, right, bottom = (round(edge) for edge in each.box)
        draw.rectangle((left, top, max(left, right), max(top, bottom)), outline=colour, width=line)
        text = f"{each.label} {each.score:.0%}"
        box = draw.textbbox((0, 0), text, font=font)
        width_of_text = int(box[2]) + 2 * line
        place = (max(0, min(left, image.width - 1 - width_of_text)), max(0, top - int(box[3]) - 2 * line))
        draw.rectangle((*place, place[0] + width_of_text, place[1] + box[3] + 2 * line), fill=colour)
        draw.text((place[0] + line, place[1] + line), text, fill=DARK if _is_bright(colour) else LIGHT, font=font)
    return image


def draw_segments(picture: Any, numbers: npt.NDArray[Any], labels: Sequence[str]) -> Any:
    """Return a copy of a picture, in RGB, with a colour and a name for each label of its pixels.

    Args:
        picture: of Pillow, or an array (height, width, 3) of uint8.
        numbers: indices into the labels, (height, width).
        labels: the names.

    Raises:  ArgumentError for numbers of another size; MissingPackageError without Pillow
    """
    image = as_rgb(pillow("draw_segments").fromarray(picture) if isinstance(picture, np.ndarray) else picture)
    if numbers.shape != (image.height, image.width):
        size = image.height, image.width
        raise ArgumentError(f"labels {numbers.shape} for a picture of {size}", hint="pass labels of the picture's size")
    present = [int(number) for number in np.unique(numbers)]
    table = np.zeros((max(present) + 1, 3), np.float32)
    for number in present:
        table[number] = colour_of(labels[number])
    pixels = np.asarray(image, np.float32)
    image = pillow("draw_segments").fromarray(np.rint(pixels + OPACITY * (table[numbers] - pixels)).astype(np.uint8))
    from PIL import ImageDraw, ImageFont

    draw = ImageDraw.Draw(image)
    larger = max(image.size)
    font = ImageFont.load_default(max(LEAST_TEXT, larger // TEXT))
    for number in present:
        rows, columns = np.nonzero(numbers == number)
        middle = len(rows) // 2  # a pixel of the label, in the middle of its rows
        place = int(columns[middle]), int(rows[middle])
        draw.text(place, labels[number], fill=LIGHT, font=font, anchor="mm", stroke_width=2, stroke_fill=DARK)
    return image


def colour_of(label: str) -> tuple[int, int, int]:
    """Return the colour of a label, the same in each picture."""
    hue = zlib.crc32(label.encode()) / 2**32
    red, green, blue = colorsys.hsv_to_rgb(hue, 0.85, 0.95)
    return round(red * 255), round(green * 255), round(blue * 255)


def _is_bright(colour: tuple[int, int, int]) -> bool:
    red, green, blue = colour
    return 0.299 * red + 0.587 * green + 0.114 * blue > 140  # the luma of ITU-R BT.601


def _with_masks(image: Any, detections: Sequence[Detection]) -> Any:
    masked = [each for each in detections if each.mask is not None]
    if not masked:
        return image.copy()
    pixels = np.array(image, np.float32)
    for each in masked:
        if each.mask is None or each.mask.shape != pixels.shape[:2]:
            shape = None if each.mask is None else each.mask.shape
            raise ArgumentError(
                f"a mask {shape} for a picture of {pixels.shape[:2]}", hint="pass masks of the picture's size"
            )
        pixels[each.mask] += OPACITY * (np.array(colour_of(each.label), np.float32) - pixels[each.mask])
    return pillow("draw_detections").fromarray(np.rint(pixels).astype(np.uint8))
