"""`tallow depth`: tell how far away things in images are.

Prints the least and the largest depth of each IMAGE, or of each image in a folder. A metric model tells metres; of a
relative one, larger values are nearer. --save writes depths as PNG files with 16 bits: of a metric model millimetres,
with 65535 for all that is farther than 65.5 metres; of a relative one from the farthest, 0, to the nearest, 65535:

  tallow depth street.jpg --model depth-anything/Depth-Anything-V2-Small-hf --save out/
  tallow depth photos/ --model depth-anything/Depth-Anything-V2-Metric-Indoor-Small-hf --json
"""

from __future__ import annotations

import argparse
import json
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tallow.cli.pictures import Answer, add_pictures, over_pictures
from tallow.errors import escaped_line
from tallow.io.images import pillow
from tallow.models.vision.depth import DepthEstimator

MOST = 65535  # of 16 bits
MILLIMETRES = 1000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of `tallow depth`."""
    add_pictures(
        parser,
        model="a Depth Anything, version 1 or 2: its folder, or owner/repository on the Hugging Face Hub",
        json="print a JSON object per image: its size, the least and the largest depth, and the unit",
        save="write the depths of the images to this folder, as PNG files with 16 bits",
    )


def run(arguments: argparse.Namespace) -> int:
    """Print the range of the depths of each image.  Returns, raises: as `over_pictures`"""

    def answer(estimator: DepthEstimator, path: Path, image: Any) -> Answer:
        (depth_YX,) = estimator.estimate(image)
        text = (_line if arguments.json else _sentence)(path, depth_YX, estimator.is_metric)
        return Answer(text, partial(_picture, depth_YX, estimator.is_metric))

    return over_pictures(arguments, "measuring", DepthEstimator.from_pretrained, answer)


def _line(path: Path, depth_YX: npt.NDArray[Any], is_metric: bool) -> str:
    height, width = depth_YX.shape
    size = {"image": str(path), "width": width, "height": height}
    least, most = (float(f"{value:.6g}") for value in (depth_YX.min(), depth_YX.max()))
    return json.dumps(size | {"least": least, "largest": most, "unit": "m" if is_metric else None})


def _sentence(path: Path, depth_YX: npt.NDArray[Any], is_metric: bool) -> str:
    least, most = float(depth_YX.min()), float(depth_YX.max())
    told = f"{least:.2f} to {most:.2f} metres" if is_metric else f"{least:.4g} (farthest) to {most:.4g} (nearest)"
    return f"{escaped_line(str(path))}  {told}"


def _picture(depth_YX: npt.NDArray[Any], is_metric: bool) -> Any:
    """Return the depths as a picture of 16 bits."""
    if is_metric:
        levels = depth_YX * MILLIMETRES
    else:
        least, most = depth_YX.min(), depth_YX.max()
        levels = (depth_YX - least) * (MOST / max(float(most - least), float(np.finfo(np.float32).tiny)))
    return pillow("tallow depth").fromarray(np.clip(np.rint(levels), 0, MOST).astype(np.uint16))
