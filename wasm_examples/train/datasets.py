"""The datasets, each with the code that script.py writes to make it again."""

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
IMAGES_PER_STYLE = 150
POINT_CLASSES = 4
SHAPES = {"moons": points.two_moons, "circles": points.circles, "spirals": points.spirals, "xor": points.xor}

SPLIT = """
order = tl.randperm(len(x))
train, test = order[len(x) // 5 :], order[: len(x) // 5]
"""
READ_IDX = '''\
def read_idx(path):
    """Read an array in MNIST's format: two zeros, the data type, the number of axes, their lengths, the values."""
    with (gzip.open if path.endswith(".gz") else open)(path, "rb") as file:
        data = file.read()
    shape = struct.unpack_from(f">{data[3]}I", data, 4)
    return tl.from_numpy(np.frombuffer(data, np.uint8, offset=4 + 4 * data[3]).reshape(shape).copy())


'''


@dataclass(frozen=True)
class Dataset:
    """Data, and the lines of a script that make it again."""

    title: str
    data: Data
    classes: int
    imports: tuple[str, ...]
    code: str

    @property
    def has_images(self) -> bool:
        return self.data.x.ndim == 4


def shape(name: str, noise: float, seed: int) -> Dataset:
    """Return points in the plane, in one of SHAPES."""
    function = SHAPES[name]
    tl.manual_seed(seed)
    x, y = function(POINTS, noise)
    call = f"tl.manual_seed({seed})\nx, y = {function.__name__}({POINTS}, noise={noise:g})"
    code = f"{inspect.getsource(function)}\n\n{call}{SPLIT}"
    return Dataset(function.__name__.replace("_", " "), split(x, y), 2, ("import math",), code)


def drawn_digits(seed: int) -> Dataset:
    """Return the digits that digits.py draws."""
    tl.manual_seed(seed)
    x, y = digits.drawn_digits(IMAGES_PER_STYLE)
    source = inspect.getsource(digits)
    call = f"tl.manual_seed({seed})\nx, y = drawn_digits({IMAGES_PER_STYLE})"
    code = f"{source[source.index('def arc') :]}\n\n{call}{SPLIT}"
    return Dataset("drawn digits", split(x, y), 10, ("import math", "from itertools import pairwise"), code)


def own_points(user_points: Sequence[tuple[float, float, int]]) -> Dataset:
    """Return the user's points (x, y, class). There may be few, so all are in the training set and the test set."""
    table = tl.tensor(user_points, dtype=tl.float32).reshape(-1, 3)
    x, y = table[:, :2], table[:, 2].long()
    indices = tl.arange(len(x))
    rows = "".join(f"    [{x:g}, {y:g}, {label}],\n" for x, y, label in user_points)
    code = (
        f"points = tl.tensor([\n{rows}])\nx, y = points[:, :2], points[:, 2].long()\ntrain = test = tl.arange(len(x))\n"
    )
    classes = max([2, *(label + 1 for _, _, label in user_points)])
    return Dataset("your own points", Data(x, y, indices, indices), classes, (), code)


def image_files(images: tl.Tensor, labels: tl.Tensor, names: tuple[str, str], limit: int, seed: int) -> Dataset:
    """Return the first `limit` images (N, 28, 28) and labels (N,), uint8, of the files with these names."""
    tl.manual_seed(seed)
    x, y = images[:limit].unsqueeze(1) / 255, labels[:limit].long()
    limited = f"[:{limit}]" if len(images) > limit else ""
    code = (
        f"{READ_IDX}tl.manual_seed({seed})\n"
        f"x = read_idx({names[0]!r}){limited}.unsqueeze(1) / 255\n"
        f"y = read_idx({names[1]!r}){limited}.long()"
        f"{SPLIT}"
    )
    return Dataset(names[0], split(x, y), 10, ("import gzip", "import struct", "", "import numpy as np"), code)


def split(x: tl.Tensor, y: tl.Tensor) -> Data:
    """Split the examples at random: a fifth is the test set."""
    order = tl.randperm(len(x))
    return Data(x, y, order[len(x) // 5 :], order[: len(x) // 5])


def check_point(x: float, y: float, label: int) -> None:
    """Raise ArgumentError for a point outside the plane that the page shows, or of an unknown class."""
    if not (-2 <= x <= 2 and -2 <= y <= 2 and 0 <= label < POINT_CLASSES):
        raise ArgumentError(f"point ({x}, {y}) of class {label}", hint="click the plane")
