"""Commands over pictures: their arguments, and one loop over files and folders."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from tallow.cli.device import add_device_option
from tallow.cli.progress import Progress
from tallow.cli.quant import add_quant_option
from tallow.cli.terminal import one_line, report
from tallow.errors import ArgumentError, ImageError
from tallow.io.atomic import atomic_write, made_folder
from tallow.io.images import read_image

M = TypeVar("M")
FAILED = 1
ENDINGS = (".jpg", ".jpeg", ".png", ".webp", ".gif", ".bmp", ".tif", ".tiff")  # of files that a folder is searched for


class Answer(NamedTuple):
    """The answer of a command about a picture.

    Attributes:
        text: what it prints.
        draw: returns the picture that it saves, of Pillow.
    """

    text: str
    draw: Callable[[], Any] | None = None


def add_pictures(parser: argparse.ArgumentParser, model: str, json: str, save: str | None = None) -> None:
    """Add the options of a command over pictures.

    Args:
        model, json, save: what the options mean; save None leaves it out.
    """
    parser.add_argument(
        "images", nargs="+", metavar="IMAGE", help="image files: JPEG, PNG, WebP, GIF, BMP or TIFF; or folders of them"
    )
    parser.add_argument("-m", "--model", required=True, metavar="MODEL", help=model)
    parser.add_argument("--json", action="store_true", help=json)
    if save is not None:
        parser.add_argument("--save", metavar="DIR", help=save)
    add_quant_option(parser)
    add_device_option(parser)


def over_pictures(
    arguments: argparse.Namespace, doing: str, load: Callable[..., M], answer: Callable[[M, Path, Any], Answer]
) -> int:
    """Print an answer for each picture, and save pictures with --save.

    Args:
        doing: a word for the bar, such as "detecting".
        load: loads the model by its name, `device=` and `quant=`, such as a `from_pretrained`.
        answer: returns the answer of the model about a path and its picture.

    Returns:  1 if a file could not be read, or its picture is too thin for the model, else 0
    Raises:  TallowError, OSError for other invalid input
    """
    paths = [path for each in arguments.images for path in _files(Path(each))]
    folder = None if getattr(arguments, "save", None) is None else Path(arguments.save)
    targets = None if folder is None else _targets(paths, folder)
    model = load(arguments.model, device=arguments.device, quant=arguments.quant)
    failed = 0
    with (
        nullcontext() if folder is None else made_folder(folder),
        Progress(len(paths), doing, "images") as progress,
    ):
        for i, path in enumerate(paths):
            progress.advance_to(i)
            try:
                told = answer(model, path, read_image(path))
            except (ImageError, OSError) as error:
                failed += 1
                report(f"tallow {arguments.command}: error: {one_line(error)}")
                continue
            if targets is not None and told.draw is not None:
                with atomic_write(targets[i]) as file:
                    told.draw().save(file, "PNG")
            progress.print(told.text)
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
    """Return where the saved images go.  Raises: ArgumentError for two of one name"""
    targets = [folder / f"{path.stem}.png" for path in paths]
    if len({*targets}) < len(targets):
        raise ArgumentError(f"two images have the same name in --save {folder}", hint="pass them one at a time")
    for path, target in zip(paths, targets, strict=True):
        if target.exists() and path.exists() and target.samefile(path):
            raise ArgumentError(f"--save {folder} would replace {path}", hint="choose another folder")
    return targets
