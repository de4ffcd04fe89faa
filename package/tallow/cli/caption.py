"""`tallow caption`: describe images in words, or answer a question about them.

Prints a caption for each IMAGE, or for each image in a folder; with --question the answer:

  tallow caption photo.jpg --model Salesforce/blip-image-captioning-base
  tallow caption photos/ --model Salesforce/blip-vqa-base --question "how many cats are there?" --json
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from tallow.cli.language_model import positive_int
from tallow.cli.pictures import Answer, add_pictures, over_pictures
from tallow.errors import ArgumentError, escaped_line
from tallow.models.vision.captions import ImageCaptioner


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of `tallow caption`."""
    add_pictures(
        parser,
        model="a BLIP for captions or for questions: its folder, or owner/repository on the Hugging Face Hub",
        json="print a JSON object per image",
    )
    parser.add_argument("--question", metavar="TEXT", help="a question about the images, for a model of answers")
    parser.add_argument("--prompt", metavar="TEXT", default="", help="the beginning of captions")
    parser.add_argument(
        "--max-tokens",
        type=positive_int,
        default=50,
        metavar="N",
        help="largest number of tokens to write (default: %(default)s)",
    )
    parser.add_argument("--beams", type=positive_int, default=1, metavar="N", help="search with N texts")


def run(arguments: argparse.Namespace) -> int:
    """Print the caption of each image, or an answer.

    Returns, raises:  as `over_pictures`; ArgumentError for a question and a model of captions, and the other way round
    """

    def load(name: str, **placed: Any) -> ImageCaptioner:
        captioner = ImageCaptioner.from_pretrained(name, **placed)
        if captioner.answers and arguments.question is None:
            raise ArgumentError("the model answers questions", hint="pass one after --question")
        if captioner.answers and arguments.prompt:
            raise ArgumentError("--prompt begins captions, and the model answers questions", hint="leave it out")
        return captioner

    options = {"max_tokens": arguments.max_tokens, "num_beams": arguments.beams}

    def answer(captioner: ImageCaptioner, path: Path, image: Any) -> Answer:
        if arguments.question is not None:
            text = "".join(captioner.answer(image, arguments.question, **options)).strip()
            entries = {"question": arguments.question, "answer": text}
        else:
            text = arguments.prompt + "".join(captioner.caption(image, arguments.prompt, **options))
            entries = {"caption": text.strip()}
        if arguments.json:
            return Answer(json.dumps({"image": str(path), **entries}))
        return Answer(f"{escaped_line(str(path))}  {escaped_line(text.strip())}")

    return over_pictures(arguments, "describing", load, answer)
