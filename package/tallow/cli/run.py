"""`tallow run`: run an ONNX model on arrays, pictures and sounds.

MODEL is a file, or owner/repository:file.onnx on the Hugging Face Hub. Each --input is a file for the next input, or
NAME=FILE for the input of that name:

  an array     .npy, .npz with one array, or .json with nested lists
  a picture    JPEG, PNG, WebP, GIF, BMP or TIFF: resized to the input's size, then --scale
  a sound      any audio file: one channel at --rate; cut or padded if the input's length is fixed
  a folder     of pictures or sounds: the model runs on each, with a progress bar

  tallow run classifier.onnx --input photo.jpg --scale imagenet --top 5
  tallow run net.onnx --input x=a.npy mask=b.npy --output out.npz

Without --output, the outputs are described. A folder's results are one .npz file per file, in the folder --output.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tallow.audio.sound import SAMPLE_RATE_HZ, Sound
from tallow.cli.device import add_device_option
from tallow.cli.language_model import positive_int
from tallow.cli.progress import Progress
from tallow.cli.terminal import one_line, print_json, report
from tallow.core.tensor import Tensor
from tallow.errors import ArgumentError, AudioError, ImageError, escaped_line
from tallow.io import npz
from tallow.io.atomic import atomic_write
from tallow.io.images import read_image
from tallow.io.regular import read_regular
from tallow.onnx.feeds import ORDERS, SCALES, from_array, from_picture, from_sound, picture_dims
from tallow.onnx.loading import OnnxModule, load
from tallow.onnx.signature import ValueInfo
from tallow.tape.modes import no_grad

FAILED = 1
PICTURES = (".jpg", ".jpeg", ".png", ".webp", ".gif", ".bmp", ".tif", ".tiff", ".avif", ".heic")
ARRAYS = (".npy", ".npz", ".json")
SIDE = 224  # of a picture where neither the model nor --size gives it
SHOWN = 8  # values of an output that is described
FITS = ("crop", "stretch", "pad")
GREY = (114, 114, 114)
BILINEAR = 2  # of Pillow's filters


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of `tallow run`."""
    parser.add_argument("model", metavar="MODEL", help="an ONNX file, or owner/repository:file.onnx on the Hub")
    parser.add_argument(
        "-i", "--input", nargs="+", default=[], metavar="[NAME=]FILE", help="a file or folder for each input"
    )
    parser.add_argument("-o", "--output", metavar="OUT", help="an .npz file, or for a folder of inputs a folder")
    parser.add_argument("--json", action="store_true", help="print the outputs as JSON, an object per run")
    parser.add_argument("--top", type=positive_int, metavar="K", help="print the K largest values of each row")
    pictures = parser.add_argument_group("pictures")
    pictures.add_argument(
        "--scale",
        choices=SCALES,
        default="unit",
        help="unit: 0 to 1; imagenet: minus ImageNet's mean, by its deviation; signed: -1 to 1; bytes: 0 to 255 "
        "(default: %(default)s)",
    )
    pictures.add_argument(
        "--fit",
        choices=FITS,
        default="crop",
        help="crop: cut the middle out; stretch; pad: with grey (default: %(default)s)",
    )
    pictures.add_argument(
        "--size",
        type=positive_int,
        default=SIDE,
        metavar="N",
        help="height and width where the model leaves them open (default: %(default)s)",
    )
    pictures.add_argument("--order", choices=ORDERS, default="rgb", help="of the channels (default: %(default)s)")
    parser.add_argument(
        "--rate",
        type=positive_int,
        default=SAMPLE_RATE_HZ,
        metavar="HZ",
        help="sample rate of sounds (default: %(default)s)",
    )
    add_device_option(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run the model on the files.

    Returns:  1 if a file of a folder could not be read, else 0
    Raises:   TallowError, OSError
    """
    model = load(arguments.model)
    model.to(arguments.device)
    files = _files(arguments.input, model.inputs())
    folders = [name for name, path in files.items() if path.is_dir()]
    if not folders:
        if arguments.output is not None and Path(arguments.output).suffix != ".npz":
            raise ArgumentError(f"{arguments.output}: outputs are an .npz file", hint="use --output OUT.npz, or --json")
        _finish(_outputs(model, files, arguments), arguments, arguments.output, None)
        return 0
    if len(folders) > 1 or (arguments.output is not None and Path(arguments.output).suffix):
        raise ArgumentError("a folder's results go to a folder", hint="pass one folder of inputs, and --output FOLDER")
    return _run_folder(model, files, folders[0], arguments)


def _run_folder(model: OnnxModule, files: dict[str, Path], name: str, arguments: argparse.Namespace) -> int:
    """Run the model on each file of a folder."""
    members = sorted(path for path in files[name].iterdir() if path.is_file() and not path.name.startswith("."))
    if not members:
        raise ArgumentError(f"{files[name]} has no files", hint="choose another folder")
    folder = Path(arguments.output) if arguments.output else None
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
    failed = 0
    with Progress(len(members), f"running {Path(arguments.model).name}", "files") as progress:
        for path in members:
            try:
                outputs = _outputs(model, files | {name: path}, arguments)
            except (ImageError, AudioError) as error:
                failed += 1
                report(f"tallow run: error: {one_line(error)}")
            else:
                target = None if folder is None else str(folder / f"{path.name}.npz")
                _finish(outputs, arguments, target, path)
            progress.advance(1)
    return FAILED if failed else 0


def _files(given: Sequence[str], inputs: Sequence[ValueInfo]) -> dict[str, Path]:
    """Return the file of each input.  Raises: ArgumentError for a name that is missing, unknown or given twice"""
    names = [info.name for info in inputs]
    files: dict[str, Path] = {}
    for text in given:
        head, equals, tail = text.partition("=")
        name = head if equals and head in names else next((name for name in names if name not in files), None)
        if equals and head not in names and not Path(text).exists():
            raise ArgumentError(f"the model has no input {head!r}", hint=f"its inputs are {', '.join(names)}")
        if name is None or name in files:
            raise ArgumentError(f"{text}: no input is left for it", hint=f"the inputs are {', '.join(names)}")
        files[name] = Path(tail if equals and head in names else text)
    if missing := [str(name) for name in names if name not in files]:
        raise ArgumentError(f"no file for {', '.join(missing)}", hint="pass --input NAME=FILE ...")
    return files


def _outputs(model: OnnxModule, files: dict[str, Path], arguments: argparse.Namespace) -> dict[str, Any]:
    values = {info.name: _value(files[info.name], info, arguments) for info in model.inputs()}
    placed = {
        name: value.to(arguments.device) if isinstance(value, Tensor) else value for name, value in values.items()
    }
    with no_grad():
        results = model(**placed)
    return dict(zip(model.output_names, results if isinstance(results, tuple) else (results,), strict=True))


def _value(path: Path, info: ValueInfo, arguments: argparse.Namespace) -> Any:
    """Return what a file holds as the value of an input.  Raises: TallowError, OSError"""
    suffix = path.suffix.lower()
    if suffix in ARRAYS:
        return from_array(_array(path, suffix), info)
    if suffix in PICTURES:
        return from_picture(_pixels(path, info, arguments), info, scale=arguments.scale, order=arguments.order)
    return from_sound(Sound(str(path), sample_rate_hz=arguments.rate).read(), info)


def _array(path: Path, suffix: str) -> Any:
    if suffix == ".json":
        try:
            return np.asarray(json.loads(read_regular(str(path))))
        except (ValueError, RecursionError) as error:
            raise ArgumentError(f"{path} holds no array: {error}", hint="write nested lists of one depth") from error
    if suffix == ".npy":
        return npz.load_array(str(path))
    tensors = npz.load(str(path))
    if len(tensors) != 1:
        raise ArgumentError(f"{path} has {len(tensors)} arrays", hint="save one array in a file for each input")
    return next(iter(tensors.values()))


def _pixels(path: Path, info: ValueInfo, arguments: argparse.Namespace) -> npt.NDArray[np.uint8]:
    """Return a picture of the input's size, (H, W, 3), resized by Pillow's bilinear filter."""
    image = read_image(path)
    dims = picture_dims(info)
    width = (dims and dims.width) or arguments.size
    height = (dims and dims.height) or arguments.size
    across, down = width / image.width, height / image.height
    if arguments.fit == "stretch":
        return np.asarray(image.resize((width, height), BILINEAR))
    if arguments.fit == "crop":  # before it is resized: a long and narrow picture would become a very large one
        cut = width / max(across, down), height / max(across, down)
        left, top = (image.width - cut[0]) / 2, (image.height - cut[1]) / 2
        box = (left, top, min(left + cut[0], image.width), min(top + cut[1], image.height))
        return np.asarray(image.resize((width, height), BILINEAR, box=box))
    by = min(across, down)
    size = max(1, round(image.width * by)), max(1, round(image.height * by))
    left, top = (width - size[0]) // 2, (height - size[1]) // 2
    canvas = np.full((height, width, 3), GREY, np.uint8)
    canvas[top : top + size[1], left : left + size[0]] = np.asarray(image.resize(size, BILINEAR))
    return canvas


def _finish(outputs: dict[str, Any], arguments: argparse.Namespace, target: str | None, source: Path | None) -> None:
    """Write the outputs of a run, and print them."""
    if target is not None:
        others = [name for name, value in outputs.items() if not isinstance(value, Tensor)]
        if others:
            raise ArgumentError(f"{', '.join(others)}: not tensors, which .npz files hold", hint="use --json")
        with atomic_write(Path(target)) as file:
            npz.save(outputs, file)
    if arguments.json:
        values = {name: _listed(value) for name, value in outputs.items()}
        print_json(({"file": str(source)} if source else {}) | {"outputs": values})
        return
    if source is not None:
        print(escaped_line(str(source)))
    for name, value in outputs.items():
        print(f"{escaped_line(name)}  {_described(value)}")
        if arguments.top is not None and isinstance(value, Tensor) and value.ndim:
            _print_largest(value, arguments.top)


def _print_largest(value: Tensor, count: int) -> None:
    """Print the largest values of each row with their places."""
    for row in value.float().reshape(-1, value.shape[-1]).numpy():
        for place in np.argsort(-row, kind="stable")[:count]:
            print(f"  {place:>6}  {row[place]:.6g}")


def _listed(value: Any) -> Any:
    if isinstance(value, Tensor):
        data = _in_json(value.tolist())
        return {"dtype": str(value.dtype).rpartition(".")[2], "shape": list(value.shape), "data": data}
    return (
        [_listed(each) for each in value] if isinstance(value, list | tuple) else _in_json(np.asarray(value).tolist())
    )


def _in_json(value: Any) -> Any:
    """Return nested lists with strings for the floats that JSON lacks, as in the JSON of Protocol Buffers."""
    if isinstance(value, list):
        return [_in_json(each) for each in value]
    if not isinstance(value, float) or math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _described(value: Any) -> str:
    if not isinstance(value, Tensor):
        return repr(value)[:200]
    shape = " x ".join(map(str, value.shape)) or "scalar"
    flat = value.reshape(-1)
    values = ", ".join(f"{each:.6g}" if isinstance(each, float) else str(each) for each in flat[:SHOWN].tolist())
    return f"{str(value.dtype).rpartition('.')[2]}  {shape}  {values}{', ...' if flat.numel() > SHOWN else ''}"
