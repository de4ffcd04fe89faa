"""Values for the inputs of an ONNX model: from pictures, sounds, and numbers; which of them an input takes.

A file gives an input's dtype and dims, and says nothing about what it holds; the rules here are those of common models.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from tallow import dtypes
from tallow.core.creation import tensor
from tallow.core.tensor import Tensor
from tallow.errors import ArgumentError, ShapeError
from tallow.onnx.signature import ValueInfo

Kind: TypeAlias = Literal["picture", "sound", "text", "numbers"]
Scale: TypeAlias = Literal["unit", "imagenet", "signed", "bytes"]
Order: TypeAlias = Literal["rgb", "bgr"]
SCALES: tuple[Scale, ...] = get_args(Scale)
ORDERS: tuple[Order, ...] = get_args(Order)

CHANNELS = (1, 3)
LUMINANCE = np.array([0.299, 0.587, 0.114], np.float32)  # ITU-R BT.601, as Pillow's mode L
MEAN = np.array([0.485, 0.456, 0.406], np.float32)  # of ImageNet, as torchvision
DEVIATION = np.array([0.229, 0.224, 0.225], np.float32)
OF_SOUND = ("audio", "sound", "wave", "speech", "samples", "input_values")
LEAST_SAMPLES = 256  # of a dim that may be one of samples
MOST_VALUES = 1 << 28


@dataclass(frozen=True)
class PictureDims:
    """The way in which an input takes a picture.

    Attributes:
        channels_last: (..., height, width, channels), else (..., channels, height, width).
        channels: 1 or 3.
        height, width: None where the file leaves them open.
    """

    channels_last: bool
    channels: int
    height: int | None
    width: int | None


def picture_dims(info: ValueInfo) -> PictureDims | None:
    """Return how an input takes a picture; None if it takes none, or only one of more than 268 million values."""
    shape = info.shape
    if shape is None or len(shape) not in (3, 4) or info.dtype is None:
        return None
    if prod(dim for dim in shape if isinstance(dim, int)) > MOST_VALUES:
        return None
    if not info.dtype.is_floating_point and info.dtype != dtypes.uint8:
        return None
    sizes = [dim if isinstance(dim, int) else None for dim in shape[-3:]]
    if len(shape) == 4 and shape[0] not in (1, None) and isinstance(shape[0], int):
        return None
    if sizes[0] in CHANNELS:
        return PictureDims(False, sizes[0] or 3, sizes[1], sizes[2])
    if sizes[2] in CHANNELS:
        return PictureDims(True, sizes[2] or 3, sizes[0], sizes[1])
    is_open = sizes[0] is None and len(shape) == 4 and not any(0 < (size or 0) < 8 for size in sizes)
    return PictureDims(False, 3, sizes[1], sizes[2]) if is_open else None


def kinds_of(info: ValueInfo) -> list[Kind]:
    """Return what an input may be given, the likeliest first. Numbers fit each tensor."""
    if info.kind == "string":
        return ["text"]
    kinds: list[Kind] = []
    if picture_dims(info) is not None:
        kinds.append("picture")
    shape = info.shape or ()
    is_row = info.dtype is not None and info.dtype.is_floating_point and 1 <= len(shape) <= 3 and "picture" not in kinds
    if is_row and (not isinstance(shape[-1], int) or shape[-1] >= LEAST_SAMPLES):
        if any(word in info.name.lower() for word in OF_SOUND):
            return ["sound", "numbers"]
        return ["numbers", "sound"]
    return [*kinds, "numbers"]


def from_picture(
    pixels_HWC: npt.NDArray[np.uint8], info: ValueInfo, *, scale: Scale = "unit", order: Order = "rgb"
) -> Tensor:
    """Return a picture as the value of an input.

    Args:
        pixels_HWC: red, green, blue, already of the input's size.
        scale: "unit" for 0 to 1; "imagenet" subtracts ImageNet's mean and divides by its deviation; "signed" for
            -1 to 1; "bytes" for 0 to 255.
        order: of the channels.

    Raises:  ArgumentError if the input takes no such picture; ShapeError for one of another size
    """
    dims = picture_dims(info)
    if dims is None:
        raise ArgumentError(f"the input {info.name} takes no picture: {info.dtype}{info}", hint="pass an array")
    height, width = pixels_HWC.shape[:2]
    if dims.height not in (None, height) or dims.width not in (None, width):
        raise ShapeError(f"{info.name}: a picture of {height} x {width}, expected {dims.height} x {dims.width}")
    if scale not in SCALES or order not in ORDERS:
        raise ArgumentError(f"{scale!r}, {order!r}", hint=f"scales are {', '.join(SCALES)}; orders {', '.join(ORDERS)}")
    values: npt.NDArray[Any] = pixels_HWC.astype(np.float32)
    if dims.channels == 1:
        values = values @ LUMINANCE
        values = values[..., None]
    mean, deviation = (
        (MEAN, DEVIATION) if dims.channels == 3 else (MEAN.mean(keepdims=True), DEVIATION.mean(keepdims=True))
    )
    if scale == "imagenet":
        values = (values / 255 - mean) / deviation
    elif scale != "bytes":
        values = values / 255 if scale == "unit" else values / 127.5 - 1
    if order == "bgr":
        values = values[..., ::-1]
    if not dims.channels_last:
        values = values.transpose(2, 0, 1)
    if len(info.shape or ()) == 4:
        values = values[None]
    return _typed(np.ascontiguousarray(values), info)


def from_sound(samples: npt.NDArray[np.float32], info: ValueInfo) -> Tensor:
    """Return a sound as the value of an input: cut, or padded with silence, if the file gives its length.

    Args:    samples: (N,), from -1 to 1
    Raises:  ArgumentError for a length of more than 268 million samples
    """
    shape = info.shape or (None,)
    length = shape[-1]
    if isinstance(length, int):
        _check_count(info, length)
        samples = np.pad(samples[:length], (0, max(0, length - len(samples))))
    return _typed(samples.reshape((1,) * (len(shape) - 1) + (-1,)), info)


def from_array(values: npt.NDArray[Any], info: ValueInfo) -> Tensor | npt.NDArray[Any]:
    """Return an array as the value of an input, in the input's dtype where no value changes.

    Raises:  ArgumentError if a value would change, or is no string where the input takes strings
    """
    if info.kind == "string":
        texts = np.asarray(values, dtype=object)
        if not all(isinstance(text, str) for text in texts.reshape(-1)):
            raise ArgumentError(f"{info.name}: an array with values that are no strings", hint="pass strings")
        return texts
    given = tensor(values) if not isinstance(values, Tensor) else values
    if info.dtype is None or given.dtype == info.dtype:
        return given
    changed = given.to(info.dtype)
    if not info.dtype.is_floating_point and not bool((changed.to(given.dtype) == given).all()):
        raise ArgumentError(f"{info.name}: {given.dtype} values that {info.dtype} does not have", hint="round them")
    return changed


def filled(info: ValueInfo, dims: Sequence[int], fill: str, seed: int = 0) -> Tensor:
    """Return random numbers from 0 to 1, zeros, ones or 0, 1, 2, ... (`fill` "random", "zeros", "ones" or "range").

    Raises:  ArgumentError for more than 268 million values
    """
    count = prod(dims)
    _check_count(info, count)
    makers: dict[str, Callable[[], npt.NDArray[Any]]] = {
        "random": lambda: np.random.default_rng(seed).random(count, np.float32),
        "zeros": lambda: np.zeros(count, np.float32),
        "ones": lambda: np.ones(count, np.float32),
        "range": lambda: np.arange(count, dtype=np.float32),
    }
    if fill not in makers:
        raise ArgumentError(f"{fill!r} is no way to fill an input", hint=f"choose {', '.join(makers)}")
    return _typed(makers[fill]().reshape(tuple(dims)), info)


def _check_count(info: ValueInfo, count: int) -> None:
    if not 0 <= count <= MOST_VALUES:
        raise ArgumentError(f"{info.name}: {count:,} values", hint=f"at most {MOST_VALUES:,}")


def _typed(values: npt.NDArray[Any], info: ValueInfo) -> Tensor:
    return tensor(values, dtype=info.dtype) if info.dtype is not None else tensor(values)
