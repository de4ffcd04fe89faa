"""`tallow segment`: label the pixels of images.

Prints the labels of each IMAGE, or of each image in a folder, with the share of its pixels, the largest first. --save
also writes the images with their labels in colours:

  tallow segment street.jpg --model nvidia/segformer-b0-finetuned-ade-512-512
  tallow segment photos/ --model nvidia/segformer-b0-finetuned-ade-512-512 --save out/ --json
"""

from __future__ import annotations

import argparse
import json
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tallow.cli.pictures import Answer, add_pictures, over_pictures
from tallow.errors import escaped_line
from tallow.models.vision.segmenter import ImageSegmenter
from tallow.vision import draw_segments, encode_rle


class Segment(NamedTuple):
    """The pixels of one label."""

    label: str
    share: float
    mask: npt.NDArray[np.bool_]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of `tallow segment`."""
    add_pictures(
        parser,
        model="a SegFormer with labels of pixels: its folder, or owner/repository on the Hugging Face Hub",
        json="print a JSON object per image; masks as COCO's codes",
        save="write the images with their labels in colours to this folder",
    )


def run(arguments: argparse.Namespace) -> int:
    """Print the labels of each image.  Returns, raises: as `over_pictures`"""

    def answer(segmenter: ImageSegmenter, path: Path, image: Any) -> Answer:
        (numbers_YX,) = segmenter.segment(image)
        found = _segments(numbers_YX, segmenter.labels)
        text = _line(path, found) if arguments.json else _table(path, found)
        return Answer(text, partial(draw_segments, image, numbers_YX, segmenter.labels))

    return over_pictures(arguments, "labelling", ImageSegmenter.from_pretrained, answer)


def _segments(numbers_YX: npt.NDArray[Any], labels: tuple[str, ...]) -> list[Segment]:
    """Return the labels of a picture, the largest first."""
    masks = {int(number): numbers_YX == number for number in np.unique(numbers_YX)}
    found = [Segment(labels[number], float(mask.mean()), mask) for number, mask in masks.items()]
    return sorted(found, key=lambda each: -each.share)


def _line(path: Path, found: list[Segment]) -> str:
    entries = [{"label": it.label, "share": round(it.share, 6), "mask": encode_rle(it.mask)} for it in found]
    return json.dumps({"image": str(path), "segments": entries})


def _table(path: Path, found: list[Segment]) -> str:
    rows = [f"{each.share:7.2%}  {escaped_line(each.label)}" for each in found]
    return "\n".join([escaped_line(str(path)), *rows])
