"""From images to the input of a model: `tallow.models.ImageProcessor` with transformers' arguments.

Source:  transformers 5.23, `PilBackend`
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from tallow.core.tensor import Tensor
from tallow.errors import ArgumentError, ArgumentTypeError, CheckpointError, warn
from tallow.lazy_names import missing
from tallow.models.vision.image_processor import (
    KIND_OF_MODEL,
    KINDS,
    LONGEST,
    ImageProcessor,
    is_one,
    is_square,
)
from tallow.models.vision.padding import PADS, padded
from tallow.models.vision.postprocessing import KINDS as MEANINGS
from tallow.text.tokenizer_files import read_object
from tallow.transformers.preprocessing import (
    CONFIG,
    BatchFeature,
    Preprocessor,
    only_settings,
    read_settings,
)
from tallow.transformers.tensor_types import TensorType
from tallow.transformers.tokenization_files import folder_of
from tallow.transformers.without_effect import Neutral, effective

CHANNELS = 3  # red, green and blue
FIRST, LAST = "channels_first", "channels_last"
_COMMON = {"do_resize": True, "do_rescale": True, "rescale_factor": 1 / 255, "do_normalize": True, "crop_size": None}
# Arguments without an effect: images become RGB, all of one size, on the CPU.
_NEUTRAL: Neutral = {
    "do_convert_rgb": (None, True),
    "default_to_square": (None, True, False),  # of a size that is a number, which has become a dictionary
    "device": (None, "cpu"),
    "disable_grouping": (None, True, False),
    "do_pad": (None, False),  # of the kinds that do not pad
    "pad_size": (None,),
}
# Settings of annotations, for training.
_OF_ANNOTATIONS = frozenset(
    {"format", "ignore_index", "num_labels", "do_convert_annotations", "do_reduce_labels", "reduce_labels"}
)
ALWAYS = ("MaskFormer", "Mask2Former")  # these pad in any case, and return the mask last


class BaseImageProcessor(Preprocessor):
    """Turns images into the input of a model: resize, crop, rescale and normalize.

    Attributes:
        size: {"height": ..., "width": ...}, or {"shortest_edge": ...}.
        resample: Pillow's number of the filter for resizing.
        crop_size: {"height": ..., "width": ...} to cut from the centre.
        do_resize, do_center_crop, do_rescale, do_normalize: which steps are done.
        rescale_factor: of grey levels.
        image_mean, image_std: of the channels.
    """

    kind: ClassVar[str]
    type_key = "image_processor_type"
    nested = "image_processor"
    model_input_names: ClassVar = ["pixel_values"]

    @classmethod
    def normal(cls, settings: dict[str, Any]) -> dict[str, Any]:
        settings = super().normal(settings)
        longest = settings.pop("max_size", None)
        settings["size"] = _size(settings["size"], is_square=is_square(cls.kind))
        if "longest_edge" in KINDS[cls.kind]["size"] and {*settings["size"]} == {"shortest_edge"}:
            settings["size"]["longest_edge"] = longest or LONGEST
        if (former := settings.pop("pad_and_return_pixel_mask", None)) is not None:
            settings.setdefault("do_pad", former)
        if settings.get("crop_size") is not None:
            settings["crop_size"] = _size(settings["crop_size"], is_square=True)
        for name in ("image_mean", "image_std"):
            values = settings[name]
            settings[name] = [values] * CHANNELS if isinstance(values, int | float) else list(values)
        return settings

    def __call__(
        self,
        images: Any,
        return_tensors: str | TensorType | None = None,
        data_format: str = FIRST,
        input_data_format: str | None = None,
        **kwargs: Any,
    ) -> BatchFeature:
        """Return one image or several as `pixel_values`.

        Args:
            images: Pillow images, paths, or arrays and tensors of 0 to 255 or of 0 to 1; one or a list.
            return_tensors: "pt" for tensors, "np" for arrays; None for a list of arrays.
            data_format: "channels_first" or "channels_last", of the result.
            input_data_format: the same, of arrays; None means that the shape tells.
            kwargs: settings that replace those of the processor.

        Returns: `pixel_values`; models for detection and masks get also `pixel_mask`, 1 where a picture is and 0 where
                 it was padded
        Shapes:  pixel_values (N, 3, height, width), float32; pixel_mask (N, height, width), int64
        Raises:  ArgumentError for settings that contradict each other, and no images; ImageError, OSError
        """
        settings = self.to_dict() | {name: value for name, value in kwargs.items() if value is not None}
        pads = self.kind in PADS and (settings.pop("do_pad", None) or self.kind in ALWAYS)
        pad_size = settings.pop("pad_size", None) if pads else None
        unknown = settings.keys() - {*self.defaults, *vars(self), self.type_key, *_NEUTRAL, *_OF_ANNOTATIONS}
        if unknown:
            warn(f"{type(self).__name__} has no setting {', '.join(sorted(unknown))}; it has no effect")
        settings = effective(type(self).__name__, settings, _NEUTRAL)
        settings = {name: value for name, value in settings.items() if name not in unknown}
        settings[self.type_key] = f"{self.kind}ImageProcessor"
        rows = [_array(each, input_data_format) for each in ([images] if _is_one(images) else images)]
        if not rows:
            raise ArgumentError("a batch of no images", hint="pass one or more images")
        arrays = []
        for image, scale in rows:
            factor = settings["rescale_factor"] if settings["do_rescale"] else 1.0
            own = settings | {"do_rescale": True, "rescale_factor": factor * scale}
            array = ImageProcessor.from_entries(self.normal_entries(own), "the settings", strict=True).arrays(image)[0]
            arrays.append(array)
        data: dict[str, Any] = {"pixel_values": arrays}
        if pads:
            pixels, masks = padded(arrays, pad_size)
            named = [("pixel_values", pixels), ("pixel_mask", masks)]
            data = dict(named if self.kind in ALWAYS else reversed(named))
        if data_format != FIRST:
            data["pixel_values"] = [np.moveaxis(array, 0, -1) for array in data["pixel_values"]]
        return BatchFeature(data, tensor_type=return_tensors)

    preprocess = __call__

    def normal_entries(self, settings: dict[str, Any]) -> dict[str, Any]:
        """Return settings as the entries of a file."""
        return self.normal(dict(settings)) | {self.type_key: settings[self.type_key]}


def image_processor_class(name: str) -> type[BaseImageProcessor] | None:
    """Return the class of a name such as "ViTImageProcessor" or "CLIPImageProcessorFast"; None for an unknown one."""
    stem, found, ending = name.partition("ImageProcessor")
    stem = stem or name.removesuffix("FeatureExtractor")
    is_name = (found and ending in ("", "Fast", "Pil")) or name.endswith("FeatureExtractor")
    return _made(stem) if is_name and stem in KINDS else None


@cache
def _made(kind: str) -> type[BaseImageProcessor]:
    name = f"{kind}ImageProcessor"
    padding = {"do_pad": PADS[kind]} if kind in PADS else {}
    contents = {
        "kind": kind,
        "defaults": _COMMON | {"do_center_crop": False} | padding | KINDS[kind],
        "model_input_names": ["pixel_values", "pixel_mask"] if padding else ["pixel_values"],
        "__doc__": f"The image processor {name} of transformers: see `BaseImageProcessor`.",
        "__module__": __name__,
    }
    meanings = (MEANINGS[kind],) if kind in MEANINGS else ()
    return type(name, (*meanings, BaseImageProcessor), contents)


def __getattr__(name: str) -> Any:
    """Return the class of a name: `from tallow.transformers.image_processing import ViTImageProcessor`."""
    found = image_processor_class(name)
    if found is None:
        raise missing(__package__ or __name__, name)
    return found


class AutoImageProcessor:
    """Loads the image processor of a folder or repository, of the class that its files name."""

    def __init__(self) -> None:
        raise ArgumentTypeError(
            "AutoImageProcessor has no objects", hint="call AutoImageProcessor.from_pretrained(name)"
        )

    @classmethod
    def from_pretrained(
        cls,
        pretrained_model_name_or_path: str | Path,
        *,
        revision: str | None = None,
        token: str | None = None,
        subfolder: str = "",
        **kwargs: Any,
    ) -> BaseImageProcessor:
        """Return the image processor of a folder, with the arguments of `Preprocessor.from_pretrained`.

        Raises:  CheckpointError if there is none, or one that tallow lacks; HubError
        """
        folder = folder_of(pretrained_model_name_or_path, revision, token, subfolder, kwargs)
        settings = read_settings(folder, BaseImageProcessor.nested)
        named = settings.get("image_processor_type") or settings.get("feature_extractor_type")
        if named is None and (folder / CONFIG).is_file():
            named = f"{KIND_OF_MODEL.get(str(read_object(folder / CONFIG).get('model_type')))}ImageProcessor"
        kind = image_processor_class(str(named))
        if kind is None:
            known = ", ".join(f"{each}ImageProcessor" for each in KINDS)
            raise CheckpointError(f"{folder}: image_processor_type is {named!r:.80}", hint=f"tallow has {known}")
        return kind.from_dict(settings, **only_settings(kwargs))


def _size(value: Any, *, is_square: bool) -> dict[str, int]:
    """Return a size as a dict: {"height", "width"} or {"shortest_edge"}.  Raises: ArgumentError"""
    if isinstance(value, Mapping):
        return {name: each for name, each in value.items() if each is not None}
    if isinstance(value, int):
        return {"height": value, "width": value} if is_square else {"shortest_edge": value}
    if isinstance(value, list | tuple) and len(value) == 2:
        return {"height": value[0], "width": value[1]}
    raise ArgumentError(f"a size {value!r:.80}", hint='pass {"height": 224, "width": 224} or {"shortest_edge": 224}')


def _is_one(images: Any) -> bool:
    if isinstance(images, np.ndarray | Tensor):
        return images.ndim < 4
    return is_one(images)


def _array(image: Any, layout: str | None) -> tuple[Any, float]:
    """Return an image as `ImageProcessor` takes it, and the factor of its levels: 1/255 for those of 0 to 1."""
    if isinstance(image, Tensor):
        image = image.detach().cpu().numpy()
    if not isinstance(image, np.ndarray):
        return image, 1.0
    first = layout == FIRST or (layout is None and image.ndim == 3 and image.shape[0] in (1, 3, 4))
    if image.ndim == 3 and first:
        image = np.moveaxis(image, 0, -1)
    if image.ndim == 3 and image.shape[2] == 1:
        image = image[..., 0]
    return _levels(image)


def _levels(image: npt.NDArray[Any]) -> tuple[npt.NDArray[np.uint8], float]:
    """Return levels of 0 to 255 as integers, and what divides them.  Raises: ArgumentError for other values"""
    if image.dtype == np.uint8:
        return image, 1.0
    low, high = float(image.min(initial=0)), float(image.max(initial=0))
    if low < 0 or high > 255:
        raise ArgumentError(f"an image with levels of {low} to {high}", hint="pass levels of 0 to 255, or of 0 to 1")
    if np.array_equal(image, image.astype(np.int64)):
        return image.astype(np.uint8), 1.0
    if high > 1:
        raise ArgumentError("an image with levels between integers", hint="pass integers of 0 to 255, or 0 to 1")
    return (image * 255).astype(np.uint8), 1 / 255
