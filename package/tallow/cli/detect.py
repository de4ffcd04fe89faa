"""`tallow detect`: find objects in images.

Prints the objects of each IMAGE, or of each image in a folder: score, then left, top, right and bottom edge in pixels,
and label. --save also writes the images with what was found drawn on them:

  tallow detect street.jpg --model facebook/detr-resnet-50
  tallow detect photos/ --model yolo11n-seg.pt --save out/
"""

from __future__ import annotations

import argparse
import json
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from tallow.cli.device import add_device_option
from tallow.cli.language_model import number
from tallow.cli.progress import Progress
from tallow.cli.quant import add_quant_option
from tallow.cli.terminal import one_line, report
from tallow.errors import ArgumentError, ImageError, escaped_line
from tallow.io.atomic import atomic_write, made_folder
from tallow.io.images import read_image
from tallow.models.vision.detector import ObjectDetector
from tallow.vision import Detection, draw_detections, encode_rle

FAILED = 1
ENDINGS = (".jpg", ".jpeg", ".png", ".webp", ".gif", ".bmp", ".tif", ".tiff")  # of files that a folder is searched for
share = number(float, "a number from 0 to 1", lambda n: 0 <= n <= 1)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of `tallow detect`."""
    parser.add_argument(
        "images", nargs="+", metavar="IMAGE", help="image files: JPEG, PNG, WebP, GIF, BMP or TIFF; or folders of them"
    )
    parser.add_argument(
        "-m",
        "--model",
        required=True,
        metavar="MODEL",
        help="a DETR: its folder, or owner/repository on the Hugging Face Hub; or a YOLOv8 or YOLO11 file (.pt)",
    )
    parser.add_argument(
        "--threshold",
        type=share,
        default=0.5,
        metavar="T",
        help="least score of an object, from 0 to 1 (default: %(default)s)",
    )
    parser.add_argument("--json", action="store_true", help="print a JSON object per image; masks as COCO's codes")
    parser.add_argument("--save", metavar="DIR", help="write the images with boxes, masks and labels to this folder")
    add_quant_option(parser)
    add_device_option(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print the objects of each image.

    Returns:  1 if a file could not be read, or its picture is too thin for the model, else 0
    Raises:  TallowError, OSError for other invalid input
    """
    paths = [path for each in arguments.images for path in _files(Path(each))]
    targets = None if arguments.save is None else _targets(paths, Path(arguments.save))
    detector = ObjectDetector.from_pretrained(arguments.model, device=arguments.device, quant=arguments.quant)
    failed = 0
    with (
        nullcontext() if arguments.save is None else made_folder(Path(arguments.save)),
        Progress(len(paths), "detecting", "images") as progress,
    ):
        for i, path in enumerate(paths):
            progress.advance_to(i)
            try:
                image = read_image(path)
                (found,) = detector.detect(image, arguments.threshold)
            except (ImageError, OSError) as error:
                failed += 1
                report(f"tallow detect: error: {one_line(error)}")
                continue
            if targets is not None:
                with atomic_write(targets[i]) as file:
                    draw_detections(image, found).save(file, "PNG")
            progress.print(_line(path, found) if arguments.json else _table(path, found))
    return FAILED if failed else 0


def _files(path: Path) -> list[Path]:
    """Return a file, or the images of a folder in the order of their names.  Raises: ArgumentError if there are none"""
    if not path.is_dir():
        return [path]
    found = sorted(each for each in path.iterdir() if each.suffix.lower() in ENDINGS)
    if not found:
        raise ArgumentError(f"{path} has no images", hint=f"pass files, or a folder with {', '.join(ENDINGS)}")
    return found


def _targets(paths: list[Path], folder: Path) -> list[Path]:
    """Return where the drawn images go.  Raises: ArgumentError for two of one name"""
    targets = [folder / f"{path.stem}.png" for path in paths]
    if len({*targets}) < len(targets):
        raise ArgumentError(f"two images have the same name in --save {folder}", hint="pass them one at a time")
    for path, target in zip(paths, targets, strict=True):
        if target.exists() and path.exists() and target.samefile(path):
            raise ArgumentError(f"--save {folder} would replace {path}", hint="choose another folder")
    return targets


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
