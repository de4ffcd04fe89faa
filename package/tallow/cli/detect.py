"""`tallow detect`: find objects in images.

Prints the objects of each IMAGE, or of each image in a folder: score, then left, top, right and bottom edge in pixels,
and label. --save also writes the images with what was found drawn on them:

  tallow detect street.jpg --model facebook/detr-resnet-50
  tallow detect photos/ --model yolo11n-seg.pt --save out/
"""

from __future__ import annotations

import argparse
import json
from functools import partial
from pathlib import Path
from typing import Any

from tallow.cli.language_model import number
from tallow.cli.pictures import Answer, add_pictures, over_pictures
from tallow.errors import escaped_line
from tallow.models.vision.detector import ObjectDetector
from tallow.vision import Detection, draw_detections, encode_rle

share = number(float, "a number from 0 to 1", lambda n: 0 <= n <= 1)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of `tallow detect`."""
    add_pictures(
        parser,
        model="a DETR: its folder, or owner/repository on the Hugging Face Hub; or a YOLOv8 or YOLO11 file (.pt)",
        json="print a JSON object per image; masks as COCO's codes",
        save="write the images with boxes, masks and labels to this folder",
    )
    parser.add_argument(
        "--threshold",
        type=share,
        default=0.5,
        metavar="T",
        help="least score of an object, from 0 to 1 (default: %(default)s)",
    )


def run(arguments: argparse.Namespace) -> int:
    """Print the objects of each image.  Returns, raises: as `over_pictures`"""

    def answer(detector: ObjectDetector, path: Path, image: Any) -> Answer:
        (found,) = detector.detect(image, arguments.threshold)
        text = _line(path, found) if arguments.json else _table(path, found)
        return Answer(text, partial(draw_detections, image, found))

    return over_pictures(arguments, "detecting", ObjectDetector.from_pretrained, answer)


def _line(path: Path, found: list[Detection]) -> str:
    return json.dumps({"image": str(path), "objects": [_entry(each) for each in found]})


def _entry(found: Detection) -> dict[str, Any]:
    entry = {"label": found.label, "score": round(found.score, 6), "box": [round(edge, 2) for edge in found.box]}
    return entry if found.mask is None else entry | {"mask": encode_rle(found.mask)}


def _table(path: Path, found: list[Detection]) -> str:
    rows = [
        f"{each.score:7.2%}  {' '.join(f'{edge:7.1f}' for edge in each.box)}  {escaped_line(each.label)}"
        for each in found
    ]
    return "\n".join([escaped_line(str(path)), *(rows or ["  no objects"])])
