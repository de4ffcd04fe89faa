"""A small detector with masks: convolutions, heads without anchors at two scales, and masks as sums of prototypes.

`scripts/train_scenes.py` trains the weights that come with the page "Find things in a picture".

Letters: B batch, Y and X pixels or cells, C channels, K kinds, P prototypes, A cells of all scales, N things found.

Source:  Tian et al. 2019, arXiv:1904.01355 (boxes by distances from cells); Bolya et al. 2019, arXiv:1904.02689
         (prototypes of masks); Liu et al. 2022, arXiv:2201.03545 (blocks)
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self, TypeVar

import numpy as np
import numpy.typing as npt

from tallow.core.apply import apply
from tallow.core.creation import from_numpy
from tallow.core.tensor import Tensor
from tallow.devices import device
from tallow.errors import CheckpointError, ShapeError
from tallow.io import safetensors
from tallow.io.source import Source, open_source
from tallow.nn import functional as F
from tallow.nn.container import ModuleList
from tallow.nn.convolution import Conv2d
from tallow.nn.module import Module
from tallow.ops.joining import cat
from tallow.tape.modes import no_grad

M = TypeVar("M", bound=Module)
STRIDES = (8, 16)
MASK_STRIDE = 4
SCALES = ".scales"  # after the name of a tensor in a file
LONGEST = 5.0  # logarithm of a distance in strides: no overflow


@dataclass(frozen=True, kw_only=True)
class SceneConfig:
    """The sizes of a detector.

    Attributes:
        labels: of the kinds of things.
        emoji: one for each kind, with which pages draw it.
        width: channels at half of the resolution; they double with each halving.
        blocks: of the scales with strides 4, 8 and 16.
        prototypes: number of pictures whose sums are masks.
        side: of the pictures that it was trained with, in pixels.
    """

    labels: tuple[str, ...]
    emoji: tuple[str, ...] = ()
    width: int = 16
    blocks: tuple[int, int, int] = (1, 3, 3)
    prototypes: int = 12
    side: int = 128


class Heads(NamedTuple):
    """The answers of the detector for each cell.

    Shapes:  kinds (B, A, K), logits of a softmax; presence (B, A), the logit that a thing is there; distances
             (B, A, 4), from the centre of a cell to left, top, right, bottom, in pixels; coefficients (B, A, P);
             prototypes (B, P, Y / 4, X / 4)
    """

    kinds: Tensor
    presence: Tensor
    distances: Tensor
    coefficients: Tensor
    prototypes: Tensor


class Block(Module):
    """A depthwise convolution and two pointwise ones around an activation, added to their input."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.spatial = Conv2d(width, width, 5, padding=2, groups=width)
        self.widen = Conv2d(width, 2 * width, 1)
        self.narrow = Conv2d(2 * width, width, 1)

    def forward(self, x_BCYX: Tensor) -> Tensor:
        return x_BCYX + self.narrow(F.relu(self.widen(self.spatial(x_BCYX))))


class Stage(Module):
    """A convolution with stride 2 and blocks after it."""

    def __init__(self, inputs: int, outputs: int, blocks: int) -> None:
        super().__init__()
        self.shrink = Conv2d(inputs, outputs, 3, 2, padding=1)
        self.blocks = ModuleList(Block(outputs) for _ in range(blocks))

    def forward(self, x_BCYX: Tensor) -> Tensor:
        x_BCYX = F.relu(self.shrink(x_BCYX))
        for block in self.blocks:
            x_BCYX = block(x_BCYX)
        return x_BCYX


class SceneDetector(Module):
    """The detector. It takes pictures (B, 3, Y, X) from -1 to 1, whose sides are multiples of 16."""

    def __init__(self, config: SceneConfig) -> None:
        super().__init__()
        self.config = config
        width, (fine, middle, coarse) = config.width, config.blocks
        self.stem = Conv2d(3, width, 3, 2, padding=1)
        self.fine = Stage(width, 2 * width, fine)
        self.middle = Stage(2 * width, 4 * width, middle)
        self.coarse = Stage(4 * width, 8 * width, coarse)
        self.lateral = Conv2d(8 * width, 4 * width, 1)
        self.join = Block(4 * width)
        self.shrink = Conv2d(4 * width, 4 * width, 3, 2, padding=1)
        self.deepen = Block(4 * width)
        self.head = Block(4 * width)
        self.kinds = Conv2d(4 * width, len(config.labels), 1)
        self.presence = Conv2d(4 * width, 1, 1)
        self.distances = Conv2d(4 * width, 4, 1)
        self.coefficients = Conv2d(4 * width, config.prototypes, 1)
        self.mask_lateral = Conv2d(4 * width, 2 * width, 1)
        self.mask_join = Block(2 * width)
        self.prototypes = Conv2d(2 * width, config.prototypes, 1)

    @classmethod
    def from_files(cls, config: Source, weights: Source) -> Self:
        """Return the detector of config.json and model.safetensors, in float32.

        Raises:  CheckpointError for other files; OSError
        """
        return from_files(lambda sizes: cls(SceneConfig(**sizes)), config, weights)

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels of the kinds of things."""
        return self.config.labels

    def forward(self, pixels_B3YX: Tensor) -> Heads:
        fine_BCYX = self.fine(F.relu(self.stem(pixels_B3YX)))
        middle_BCYX = self.middle(fine_BCYX)
        deep_BCYX = self.lateral(self.coarse(middle_BCYX))
        joined_BCYX = self.join(middle_BCYX + _doubled(deep_BCYX))
        deep_BCYX = self.deepen(deep_BCYX + self.shrink(joined_BCYX))
        scales = [self.head(joined_BCYX), self.head(deep_BCYX)]
        distances = [
            _by_cell(self.distances(x_BCYX)).clamp(-LONGEST, LONGEST).exp() * stride
            for x_BCYX, stride in zip(scales, STRIDES, strict=True)
        ]
        masks_BCYX = self.mask_join(fine_BCYX + _doubled(self.mask_lateral(joined_BCYX)))
        return Heads(
            _joined([_by_cell(self.kinds(x_BCYX)) for x_BCYX in scales]),
            _joined([_by_cell(self.presence(x_BCYX)) for x_BCYX in scales]).squeeze(-1),
            _joined(distances),
            _joined([_by_cell(self.coefficients(x_BCYX)) for x_BCYX in scales]),
            self.prototypes(masks_BCYX),
        )

    def candidates(self, pixels: npt.NDArray[np.uint8], threshold: float) -> Candidates:
        """Return the cells of a picture whose best kind has at least this score; boxes of one thing are not joined.

        Shapes:  pixels (Y, X, 3); sides that are multiples of 16
        """
        with no_grad():
            heads = self(as_input(pixels[None]).to(self.stem.weight.device))
            shares_AK = _host(F.softmax(heads.kinds[0], -1))
            presence_A = _host(heads.presence[0].sigmoid())
        labels_A = shares_AK.argmax(1)
        scores_A = shares_AK.max(1) * presence_A
        chosen = np.flatnonzero(~(scores_A < threshold))  # NaN stays
        centres = cell_centres(pixels.shape[0], pixels.shape[1])[chosen]
        distances = _host(heads.distances[0])[chosen]
        boxes = np.concatenate([centres - distances[:, :2], centres + distances[:, 2:]], 1)
        coefficients = _host(heads.coefficients[0])[chosen]
        return Candidates(scores_A[chosen], labels_A[chosen], boxes, coefficients, _host(heads.prototypes[0]))


class Candidates(NamedTuple):
    """Things that may be in a picture.

    Shapes:  scores, labels (N,); boxes (N, 4), xyxy in pixels; coefficients (N, P); prototypes (P, Y / 4, X / 4)
    """

    scores: npt.NDArray[np.floating[Any]]
    labels: npt.NDArray[np.int64]
    boxes: npt.NDArray[np.floating[Any]]
    coefficients: npt.NDArray[np.floating[Any]]
    prototypes: npt.NDArray[np.floating[Any]]


def narrowed(state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return weights for a file: tables, and filters of convolutions, as int8 with a scale for each row or channel."""
    stored = {}
    for name, tensor in state.items():
        values = _host(tensor)
        if values.ndim == 1:
            stored[name] = tensor
            continue
        rest = tuple(range(1, values.ndim))
        largest = np.abs(values).max(rest, keepdims=True)
        scales = np.where(largest > 0, largest / 127, 1).astype(np.float32)
        stored[name] = from_numpy(np.rint(values / scales).astype(np.int8))
        stored[name + SCALES] = from_numpy(scales.reshape(-1))
    return stored


def widened(stored: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the weights in float32 of a file that `narrowed` has made."""
    scales = {name.removesuffix(SCALES): _host(it) for name, it in stored.items() if name.endswith(SCALES)}
    state = {}
    for name, tensor in stored.items():
        if not name.endswith(SCALES):
            scale = scales.get(name)
            values = _host(tensor).astype(np.float32)
            state[name] = from_numpy(values if scale is None else values * scale.reshape(-1, *(1,) * (values.ndim - 1)))
    return state


def from_files(make: Callable[[dict[str, Any]], M], config: Source, weights: Source) -> M:
    """Return a network of config.json and of a file that `narrowed` has made, in float32.

    Args:    make: the network of the entries; sizes that do not fit the weights take no memory
    Raises:  CheckpointError for other files; OSError
    """
    opened = open_source(config)
    state = widened(safetensors.load(weights))
    try:
        entries = json.loads(opened.data.tobytes())
        sizes = {name: tuple(it) if isinstance(it, list) else it for name, it in entries.items()}
        if max(sizes.get("blocks", ()), default=0) > len(state):
            raise ValueError("more blocks than the weights have tensors")
        with device("meta"):
            model = make(sizes)
    except (ValueError, TypeError, AttributeError, OverflowError, ShapeError) as error:
        raise CheckpointError(
            f"{opened.name} is not the configuration of such a network: {error}",
            hint="use config.json and the weights of the same model",
        ) from None
    model.load_state_dict(state, assign=True)
    return model.eval()


def as_input(pixels_BYX3: npt.NDArray[np.uint8]) -> Tensor:
    """Return pictures as the detector takes them.  Shapes: (B, Y, X, 3) -> (B, 3, Y, X)"""
    scaled = pixels_BYX3.transpose(0, 3, 1, 2).astype(np.float32) * np.float32(1 / 127.5) - np.float32(1)
    return from_numpy(np.ascontiguousarray(scaled))


def cell_centres(height: int, width: int) -> npt.NDArray[np.float32]:
    """Return the centres (A, 2), x and y in pixels, of the cells of all scales."""
    centres = []
    for stride in STRIDES:
        y, x = np.mgrid[: height // stride, : width // stride]
        centres.append((np.stack([x, y], -1).reshape(-1, 2) + 0.5) * stride)
    return np.concatenate(centres).astype(np.float32)


def _host(tensor: Tensor) -> npt.NDArray[Any]:
    return tensor.detach().cpu().numpy()


def _joined(scales: Sequence[Tensor]) -> Tensor:
    return apply(cat, tuple(scales), 1)


def _by_cell(x_BCYX: Tensor) -> Tensor:
    """Shapes: (B, C, Y, X) -> (B, Y X, C)."""
    return x_BCYX.flatten(2).transpose(1, 2)


def _doubled(x_BCYX: Tensor) -> Tensor:
    return F.interpolate(x_BCYX, scale_factor=2.0, mode="nearest")
