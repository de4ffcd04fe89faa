"""What can be trained on. Each dataset comes with the code that makes it in a script, for script.py to show."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import dataclass

import digits
import points
from training import Data

import tallow as tl
from tallow.errors import ArgumentError

POINTS = 500
DIGITS_OF_A_KIND = 150
CLASSES_OF_POINTS = 4
SHAPES = {"moons": points.two_moons, "circles": points.circles, "spirals": points.spirals, "xor": points.xor}

SPLIT = """
order = tl.randperm(len(x))
train, held = order[len(x) // 5 :], order[: len(x) // 5]
"""
READ_IDX = '''\
def read_idx(path):
    """An array in MNIST's format: two zeros, the type of its numbers, how many axes, their lengths, the numbers."""
    with (gzip.open if path.endswith(".gz") else open)(path, "rb") as file:
        data = file.read()
    shape = struct.unpack_from(f">{data[3]}I", data, 4)
    return tl.from_numpy(np.frombuffer(data, np.uint8, offset=4 + 4 * data[3]).reshape(shape).copy())


'''


@dataclass(frozen=True)
class Dataset:
    """Data, and the lines of a script that make them again."""

    title: str
    data: Data
    classes: int
    imports: tuple[str, ...]
    code: str

    @property
    def has_images(self) -> bool:
        return self.data.x.ndim == 4


def shape(name: str, noise: float, seed: int) -> Dataset:
    """One of SHAPES."""
    function = SHAPES[name]
    tl.manual_seed(seed)
    x, y = function(POINTS, noise)
    made = f"tl.manual_seed({seed})\nx, y = {function.__name__}({POINTS}, noise={noise:g})"
    code = f"{inspect.getsource(function)}\n\n{made}{SPLIT}"
    return Dataset(function.__name__.replace("_", " "), split(x, y), 2, ("import math",), code)


def drawn_digits(seed: int) -> Dataset:
    """The digits of digits.py."""
    tl.manual_seed(seed)
    x, y = digits.drawn_digits(DIGITS_OF_A_KIND)
    source = inspect.getsource(digits)
    made = f"tl.manual_seed({seed})\nx, y = drawn_digits({DIGITS_OF_A_KIND})"
    code = f"{source[source.index('def arc') :]}\n\n{made}{SPLIT}"
    return Dataset("drawn digits", split(x, y), 10, ("import math", "from itertools import pairwise"), code)


def own_points(given: Sequence[tuple[float, float, int]]) -> Dataset:
    """Points (x, y, class) of the reader's. There may be few, so none are held out."""
    table = tl.tensor(given, dtype=tl.float32).reshape(-1, 3)
    x, y = table[:, :2], table[:, 2].long()
    every = tl.arange(len(x))
    rows = "".join(f"    [{x:g}, {y:g}, {label}],\n" for x, y, label in given)
    code = (
        f"points = tl.tensor([\n{rows}])\nx, y = points[:, :2], points[:, 2].long()\ntrain = held = tl.arange(len(x))\n"
    )
    classes = max([2, *(label + 1 for _, _, label in given)])
    return Dataset("points of your own", Data(x, y, every, every), classes, (), code)


def image_files(images: tl.Tensor, labels: tl.Tensor, names: tuple[str, str], limit: int, seed: int) -> Dataset:
    """The first `limit` of images (N, 28, 28) and labels (N,), uint8, that came from files of those names."""
    tl.manual_seed(seed)
    x, y = images[:limit].unsqueeze(1) / 255, labels[:limit].long()
    some = f"[:{limit}]" if len(images) > limit else ""
    code = (
        f"{READ_IDX}tl.manual_seed({seed})\n"
        f"x = read_idx({names[0]!r}){some}.unsqueeze(1) / 255\n"
        f"y = read_idx({names[1]!r}){some}.long()"
        f"{SPLIT}"
    )
    return Dataset(names[0], split(x, y), 10, ("import gzip", "import struct", "", "import numpy as np"), code)


def split(x: tl.Tensor, y: tl.Tensor) -> Data:
    """A fifth is held out."""
    order = tl.randperm(len(x))
    return Data(x, y, order[len(x) // 5 :], order[: len(x) // 5])


def check_point(x: float, y: float, label: int) -> None:
    """Raises: ArgumentError for a point that is not in the plane that the page shows, or of no class of its."""
    if not (-2 <= x <= 2 and -2 <= y <= 2 and 0 <= label < CLASSES_OF_POINTS):
        raise ArgumentError(f"point ({x}, {y}) of class {label}", mend="click into the plane")
