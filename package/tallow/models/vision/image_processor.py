"""From images to the input of a model: resize, crop, rescale and normalise, as a folder's `preprocessor_config.json`
says.

Letters: N images, Y and X pixels.

Source:  `ViTImageProcessor`, `BitImageProcessor`, `CLIPImageProcessor` and those of models for detection, segmentation
         and depth, of transformers, with Pillow
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Self, TypeAlias

import numpy as np
import numpy.typing as npt

from tallow.core.tensor import Tensor, wrap
from tallow.errors import ArgumentError, CheckpointError, ImageError, ShapeError
from tallow.hub import local_folder
from tallow.io.images import MAX_PIXELS, as_rgb, pillow, read_image, too_large
from tallow.models.config import CONFIG, Config, Count, read_entries, tupled
from tallow.models.vision.padding import PADS, is_length, padded

Image: TypeAlias = Any  # a path, a Pillow image, or an array (Y, X, 3), (Y, X, 4) or (Y, X) of uint8
FILE, NESTED = "preprocessor_config.json", "processor_config.json"
LANCZOS, BILINEAR, BICUBIC = 1, 2, 3  # filters, numbered as in Pillow
HALF = {"image_mean": (0.5, 0.5, 0.5), "image_std": (0.5, 0.5, 0.5)}
CLIP = {
    "image_mean": (0.48145466, 0.4578275, 0.40821073),
    "image_std": (0.26862954, 0.26130258, 0.27577711),
    "size": {"shortest_edge": 224},
    "resample": BICUBIC,
    "do_center_crop": True,
    "crop_size": 224,
}
IMAGENET = {"image_mean": (0.485, 0.456, 0.406), "image_std": (0.229, 0.224, 0.225), "resample": BILINEAR}
LONGEST = 1333  # of a longer side, where a file says only the shorter one
EDGES = {"size": {"shortest_edge": 800, "longest_edge": LONGEST}}
WARPED = 384  # pixels from which a size with a crop_pct is that of a square without a crop
# For each kind of processor, what a file may leave out.
KINDS: dict[str, dict[str, Any]] = {
    "ViT": {"size": {"height": 224, "width": 224}, "resample": BILINEAR} | HALF,
    "Bit": CLIP,
    "Blip": {name: value for name, value in CLIP.items() if name.startswith(("image_", "resample"))}
    | {"size": {"height": 384, "width": 384}},
    "CLIP": CLIP,
    "ConvNext": IMAGENET | {"size": {"shortest_edge": 384}, "resample": BICUBIC, "crop_pct": 224 / 256},
    "DPT": {"size": {"height": 384, "width": 384}, "resample": BICUBIC, "ensure_multiple_of": 1}
    | {"keep_aspect_ratio": False}
    | HALF,
    "Detr": IMAGENET | EDGES,
    "Mask2Former": IMAGENET | EDGES | {"size_divisor": 32},
    "MaskFormer": IMAGENET | EDGES | {"size_divisor": 32},
    "RTDetr": IMAGENET | {"size": {"height": 640, "width": 640}, "do_normalize": False},
    "Segformer": IMAGENET | {"size": {"height": 512, "width": 512}},
    "Yolos": IMAGENET | EDGES | {"mod_size": 16},
}
KIND_OF_MODEL = {
    "vit": "ViT",
    "dinov2": "Bit",
    "blip": "Blip",
    "clip": "CLIP",
    "detr": "Detr",
    "resnet": "ConvNext",
}  # for a file that names no kind


class Edges(NamedTuple):
    """The length of the shorter side, unless the longer one exceeds its limit."""

    shortest: int
    longest: int


@dataclass(frozen=True, kw_only=True)
class ImageProcessor(Config):
    """Turns images into the input of a model.

    Attributes:
        size: (height, width); or the length of the shorter side, and the longer one follows; or Edges.
        keep_aspect_ratio: with a height and a width, scale both sides by one factor: the one that is nearer to 1.
        size_divisor, ensure_multiple_of, mod_size: round both sides to multiples: up, to the nearest, or down.
        resample: Pillow's number of the filter for resizing.
        crop_size: (height, width) to cut from the centre; smaller images get a black border.
        crop_pct: with a size below 384, resize the shorter side to size / crop_pct and cut a square of the size from
            the centre; with a larger one, resize both sides to it. 0 means neither.
        do_pad: whether pictures of one batch get zeros to the right and below, up to one size.
        pad_size: {"height", "width"} of that; None means the largest of each.
        rescale_factor: of grey levels, before the mean is subtracted.
        image_mean, image_std: of red, green and blue.

    Example:
        processor = ImageProcessor.from_pretrained("google/vit-base-patch16-224")
        pixels = processor(["cat.jpg", "dog.jpg"])  # (2, 3, 224, 224)
    """

    size: tuple[int, int] | int | Edges
    resample: Count
    image_mean: tuple[float, float, float]
    image_std: tuple[float, float, float]
    crop_size: tuple[int, int] | None = None
    crop_pct: float = 0.0
    keep_aspect_ratio: bool = False
    size_divisor: Count = 0
    ensure_multiple_of: Count = 0
    mod_size: Count = 0
    rescale_factor: float = 1 / 255
    do_resize: bool = True
    do_center_crop: bool = False
    do_pad: bool = False
    pad_size: Any = None
    do_rescale: bool = True
    do_normalize: bool = True

    model_types: ClassVar[tuple[str, ...]] = tuple(KIND_OF_MODEL)
    computed: ClassVar = {"use_square_size": (False,)}
    # How transformers calls it; images are always converted to RGB.
    neutral: ClassVar = frozenset(
        {"image_processor_type", "feature_extractor_type", "processor_class", "_valid_processor_keys", "do_convert_rgb"}
        | {"data_format", "input_data_format", "return_tensors", "device", "disable_grouping", "default_to_square"}
        # Of annotations for training.
        | {"format", "do_convert_annotations", "do_reduce_labels", "reduce_labels", "ignore_index", "num_labels"}
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require("resample", "a filter of Pillow, 0 to 5", lambda number: number <= 5)
        self.require("size", "a length in pixels, or two", lambda size: is_length(size) or _is_size(size))
        self.require("crop_size", "two lengths in pixels", lambda size: size is None or _is_size(size))
        self.require("crop_pct", "0 to 1", lambda part: 0 <= part <= 1)
        if self.crop_pct and type(self.size) is not int:
            raise ArgumentError("ImageProcessor: crop_pct with two lengths", hint='pass size={"shortest_edge": 224}')
        self.require("image_mean", "three numbers", _are_numbers)
        self.require("image_std", "three positive numbers", lambda std: _are_numbers(std) and min(std) > 0)
        if self.do_center_crop and self.crop_size is None:
            raise ArgumentError("ImageProcessor: do_center_crop without a crop_size", hint="pass crop_size")

    @classmethod
    def from_pretrained(cls, name: str | Path, *, revision: str | None = None, token: str | None = None) -> Self:
        """Read the `preprocessor_config.json` of a folder or of a Hub repository.

        Args:    revision, token: as in `tallow.hub.local_folder`
        Raises:  CheckpointError when it is missing, of another kind, or has unsupported entries; HubError
        """
        folder = local_folder(name, revision=revision, token=token)
        path = folder / FILE
        if not path.exists() and (folder / NESTED).exists():  # transformers 5 writes one file for texts and images
            path = folder / NESTED
            entries = read_entries(path).get("image_processor")
            if not isinstance(entries, dict):
                raise CheckpointError(f"{path} has no image_processor", hint="it may be a model of texts")
        else:
            entries = read_entries(path)
        if "image_processor_type" not in entries and (folder / CONFIG).exists():
            kind = KIND_OF_MODEL.get(str(read_entries(folder / CONFIG).get("model_type")))
            entries.setdefault("feature_extractor_type", kind)
        return cls.from_entries(entries, str(path), strict=True)

    @classmethod
    def prepare(cls, entries: dict[str, Any]) -> None:
        """Take defaults of the kind of processor, and the forms of sizes that older files have, in place."""
        named = entries.get("image_processor_type") or entries.get("feature_extractor_type")
        kind = re.sub("(ImageProcessor|FeatureExtractor)(Fast|Pil)?$", "", str(named))
        if kind not in KINDS:
            raise CheckpointError(
                f"{FILE}: image_processor_type is {named!r:.80}; tallow supports {', '.join(KINDS)}",
                hint="use a model that tallow.models.AutoModel loads",
            )
        former = entries.pop("pad_and_return_pixel_mask", None)  # the name of do_pad in older files
        given = {name: value for name, value in entries.items() if value is not None}
        if former is not None:
            given.setdefault("do_pad", former)
        entries.update(KINDS[kind] | ({"do_pad": PADS[kind]} if kind in PADS else {}) | given)
        if entries.get("do_pad") and kind not in PADS:
            raise CheckpointError(f"{FILE}: do_pad is True of a {named}", hint=f"tallow pads for {', '.join(PADS)}")
        if given.get("crop_pct") and "crop_pct" not in KINDS[kind]:
            what = f"{FILE}: crop_pct is {given['crop_pct']!r:.80} of a {named}"
            raise CheckpointError(what, hint="leave it out, or name a ConvNextImageProcessor")
        for name in ("size", "crop_size"):
            value = entries.get(name)
            if isinstance(value, dict) and {*value} == {"shortest_edge"}:
                entries[name] = value["shortest_edge"]
            elif isinstance(value, dict) and {*value} == {"height", "width"}:
                entries[name] = value["height"], value["width"]
            elif isinstance(value, dict) and {*value} == {"shortest_edge", "longest_edge"}:
                entries[name] = Edges(value["shortest_edge"], value["longest_edge"])
            elif type(value) is int and (name == "crop_size" or is_square(kind)):
                entries[name] = value, value
            elif type(value) is int and "longest_edge" in KINDS[kind]["size"]:
                entries[name] = Edges(value, entries.pop("max_size", LONGEST))
        tupled(entries, "image_mean", "image_std")

    def __call__(self, images: Image | Sequence[Image]) -> Tensor:
        """Return one or more images as the input of the model.

        Args:    images: paths, whose EXIF orientation is applied; Pillow images, used as they are; or arrays of uint8,
                 (Y, X, 3), (Y, X, 4) with an opacity, or (Y, X) of grey levels. Transparent parts are put on white.
        Shapes:  (N, 3, height, width), float32 on the CPU
        Raises:  ArgumentError for no images; ShapeError for arrays of other shapes, and results of different sizes;
                 ImageError for unreadable files and too many pixels; MissingPackageError without Pillow; OSError
        """
        return self.batch(images)[0]

    def batch(self, images: Image | Sequence[Image]) -> tuple[Tensor, Tensor | None]:
        """Return images as `__call__`, and where they are not padded.

        Shapes:  (N, 3, height, width), and (N, height, width) of int64: 1 for pixels of the picture, 0 for others; None
                 from a processor that does not pad
        """
        arrays = self.arrays(images)
        if not arrays:
            raise ArgumentError("a batch of no images", hint="pass one or more images")
        if self.do_pad:
            pixels, masks = padded(arrays, self.pad_size)
            return wrap(np.stack(pixels)), wrap(np.stack(masks))
        if len(sizes := {array.shape[1:] for array in arrays}) > 1:
            raise ShapeError(
                f"images of {' and '.join(map(str, sorted(sizes)))} pixels do not form a batch",
                hint="pass one at a time, or a processor with a crop_size",
            )
        return wrap(np.stack(arrays)), None

    def arrays(self, images: Image | Sequence[Image]) -> list[npt.NDArray[np.float32]]:
        """Return each image as an array (3, height, width), which may differ in size: see `__call__`."""
        return [self._array(opened(image)) for image in ([images] if is_one(images) else images)]

    def _array(self, image: Any) -> npt.NDArray[np.float32]:
        """Return a Pillow image as an array (3, Y, X)."""
        if self.do_resize:
            image = image.resize(self._target(image.width, image.height), self.resample)
            if self.crop_pct and type(self.size) is int:
                image = _cut(image, self.size, self.size)
        if self.do_center_crop and self.crop_size is not None:
            image = _cut(image, *self.crop_size)
        levels = np.arange(256) * (self.rescale_factor if self.do_rescale else 1.0)
        table_3L = np.tile(levels.astype(np.float32), (3, 1))
        if self.do_normalize:
            mean, std = (np.array(each, np.float32)[:, None] for each in (self.image_mean, self.image_std))
            table_3L = (table_3L - mean) / std
        pixels_3YX = np.moveaxis(np.asarray(image), -1, 0)
        return np.stack([table[pixels] for table, pixels in zip(table_3L, pixels_3YX, strict=True)])

    def _target(self, width: int, height: int) -> tuple[int, int]:
        """Return the width and height of an image after resizing."""
        if isinstance(self.size, Edges):
            target = _between(width, height, *self.size)
        elif isinstance(self.size, tuple):
            target = self.size[1], self.size[0]
            if self.keep_aspect_ratio:
                scale = min(target[1] / height, target[0] / width, key=lambda each: abs(1 - each))
                target = scale * width, scale * height  # type: ignore[assignment]  # rounded below
        elif self.crop_pct and self.size >= WARPED:
            target = self.size, self.size
        else:
            short = int(self.size / self.crop_pct) if self.crop_pct else self.size
            long = int(short * max(width, height) / min(width, height))
            target = (short, long) if width <= height else (long, short)
        for multiple, rounded in ((self.size_divisor, math.ceil), (self.ensure_multiple_of, round)):
            if multiple:
                target = rounded(target[0] / multiple) * multiple, rounded(target[1] / multiple) * multiple
        if self.mod_size:
            target = target[0] - target[0] % self.mod_size, target[1] - target[1] % self.mod_size
        if not min(target):
            raise ImageError(f"an image of {width} by {height} pixels is too thin to resize", hint="crop it first")
        if target[0] * target[1] > MAX_PIXELS:
            raise too_large(f"an image of {width} by {height} pixels, resized", *target)
        return target


def _between(width: int, height: int, shortest: int, longest: int) -> tuple[int, int]:
    """Return the width and height of an image whose shorter side becomes `shortest`, or its longer one `longest`."""
    short, long = sorted((width, height))
    side = float(shortest)
    if long / short * shortest > longest:
        side = longest * short / long
    length = round(side)
    if short == length:
        return width, height
    other = int(side * long / short)
    return (length, other) if width < height else (other, length)


def is_square(kind: str) -> bool:
    """Return whether one number as the size of a kind of processor means both sides."""
    return "height" in KINDS[kind]["size"]


def is_one(images: Image | Sequence[Image]) -> bool:
    """Return whether this is an image, and not a sequence of images."""
    return isinstance(images, str | os.PathLike | np.ndarray) or hasattr(images, "getbands")


def opened(image: Image) -> Any:
    """Return an image as a Pillow image in RGB."""
    if isinstance(image, np.ndarray):
        if image.dtype != np.uint8 or not image.size or not (image.ndim == 2 or image.shape[2:] in ((3,), (4,))):
            raise ShapeError(
                f"an array of {image.dtype} {image.shape}; expected uint8 (height, width, 3)",
                hint="multiply values from 0 to 1 by 255 first, and move the channels to the end",
            )
        image = pillow("ImageProcessor").fromarray(image)
    elif not hasattr(image, "getbands"):
        image = read_image(image)
    return as_rgb(image)


def _cut(image: Any, height: int, width: int) -> Any:
    """Return the centre of a Pillow image."""
    top, left = (image.height - height) // 2, (image.width - width) // 2
    return image.crop((left, top, left + width, top + height))


def _is_size(value: Any) -> bool:
    return isinstance(value, tuple) and len(value) == 2 and all(map(is_length, value))


def _are_numbers(values: Any) -> bool:
    return type(values) is tuple and len(values) == 3 and all(type(value) in (int, float) for value in values)
