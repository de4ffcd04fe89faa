"""`tallow classify`: label images.

Prints the most probable labels of each IMAGE. A ViT, DINOv2 or ResNet has labels of its own. A CLIP chooses between the
texts after --labels:

  tallow classify photo.jpg --model google/vit-base-patch16-224
  tallow classify photo.jpg --model openai/clip-vit-base-patch32 --labels "a cat" "a dog"
"""

from __future__ import annotations

import argparse

import numpy as np

from tallow.cli.device import add_device_option
from tallow.cli.language_model import positive_int
from tallow.cli.quant import add_quant_option
from tallow.cli.terminal import one_line, print_json, report
from tallow.errors import ImageError, escaped_line
from tallow.io.images import read_image
from tallow.models.vision.images import TEMPLATE, ImageClassifier

FAILED = 1


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of `tallow classify`."""
    parser.add_argument("images", nargs="+", metavar="IMAGE", help="image files: JPEG, PNG, WebP, GIF, BMP or TIFF")
    parser.add_argument(
        "-m",
        "--model",
        required=True,
        metavar="DIR",
        help="a ViT, DINOv2 or ResNet with labels, or a CLIP: its folder, or owner/repository on the Hugging Face Hub",
    )
    parser.add_argument("--labels", nargs="+", metavar="LABEL", help="with a CLIP: two or more labels to choose from")
    parser.add_argument(
        "--template",
        default=TEMPLATE,
        metavar="TEXT",
        help="with a CLIP: the sentence to compare with images, with {} in place of a label (default: %(default)s)",
    )
    parser.add_argument(
        "--top-k",
        type=positive_int,
        default=5,
        metavar="K",
        help="number of labels per image, at most (default: %(default)s)",
    )
    parser.add_argument("--json", action="store_true", help="print a JSON object per image")
    parser.add_argument(
        "--batch-size",
        type=positive_int,
        default=8,
        metavar="N",
        help="number of images per batch (default: %(default)s)",
    )
    add_quant_option(parser)
    add_device_option(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print the most probable labels of each image.

    Returns:  1 if a file could not be read, else 0
    Raises:  TallowError, OSError for other invalid input
    """
    classifier = ImageClassifier.from_pretrained(
        arguments.model,
        device=arguments.device,
        quant=arguments.quant,
        labels=arguments.labels,
        template=arguments.template,
    )
    paths, size, failed = arguments.images, arguments.batch_size, 0
    for start in range(0, len(paths), size):
        opened = []
        for path in paths[start : start + size]:
            try:
                opened.append((path, read_image(path)))
            except (ImageError, OSError) as error:
                failed += 1
                report(f"tallow classify: error: {one_line(error)}")
        if not opened:
            continue
        scores = classifier.predict([image for _, image in opened], batch_size=size)
        for (path, _), own in zip(opened, scores, strict=True):
            best = [(classifier.labels[i], own[i]) for i in np.argsort(-own, kind="stable")[: arguments.top_k]]
            if arguments.json:
                # str gives the digits that float32 needs, so readers get the same values.
                labels = [{"label": label, "score": float(str(score))} for label, score in best]
                print_json({"image": path, "labels": labels})
                continue
            lines = [f"{score:7.2%}  {escaped_line(label)}" for label, score in best]
            print("\n".join([escaped_line(path), *lines, ""] if len(paths) > 1 else lines), flush=True)
    return FAILED if failed else 0
