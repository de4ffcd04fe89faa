"""YOLOv8 and YOLO11: convolutions on three scales, in each cell of which an object may have its centre.

Built from the modules of a file, see `yolo_file`, for inference: norms are part of the convolutions.

Letters: B batch, C channels, Y and X pixels or cells, P cells of all scales, L labels, K coefficients of masks.

Source:  the architecture as https://docs.ultralytics.com/models/yolov8 and yolo11 describe it, and the names and sizes
         in their files; the distribution of distances: Li et al. 2020, arXiv:2006.04388
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from tallow.core.apply import apply
from tallow.core.creation import arange
from tallow.core.tensor import Tensor
from tallow.errors import CheckpointError
from tallow.models.vision.yolo_file import Part
from tallow.nn import functional as F
from tallow.nn.container import ModuleList, Sequential
from tallow.nn.module import Module
from tallow.nn.parameter import Parameter
from tallow.ops.joining import cat, stack

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor] | None] = {"SiLU": F.silu, "ReLU": F.relu, "Identity": None}
EPS = 1e-3  # of norms, where a file does not say
STEPS = 3  # poolings of SPPF, where a file does not say
# The largest numbers of a file: those of models are far below, and more would take memory or time without a limit.
MOST_SIZE, MOST_STEPS, MOST_FACTOR, MOST_STRIDE = 64, 16, 8, 256


class YoloOutput(NamedTuple):
    """Output of a model for pictures.

    Shapes:  boxes (B, P, 4): left, top, right, bottom in pixels of the input; scores (B, P, L) from 0 to 1;
             coefficients (B, P, K) and prototypes (B, K, Y, X) of masks, or None
    """

    boxes: Tensor
    scores: Tensor
    coefficients: Tensor | None = None
    prototypes: Tensor | None = None


class Convolution(Module):
    """activation(convolution(x) + bias)"""

    def __init__(self, conv: Part, norm: Part | None = None, act: Part | None = None) -> None:
        super().__init__()
        weight, bias = conv.weight("weight"), conv.tensor("bias")
        if norm is not None:
            scale = norm.weight("weight") / (norm.weight("running_var") + norm.get("eps", EPS)).sqrt()
            weight = weight * scale.reshape(-1, 1, 1, 1)
            shift = norm.weight("bias") - norm.weight("running_mean") * scale
            bias = shift if bias is None else shift + bias * scale
        self.weight = Parameter(weight)
        self.bias = None if bias is None else Parameter(bias)
        lowest = {"stride": 1, "padding": 0, "dilation": 1}
        sizes = [conv.number(name, 1, MOST_SIZE, least) for name, least in lowest.items()]
        self.options = (*sizes, conv.get("groups", 1))
        kind = "Identity" if act is None else act.kind
        if kind not in ACTIVATIONS:
            raise CheckpointError(f"the activation {kind:.80}", hint=f"tallow has {', '.join(ACTIVATIONS)} there")
        self.activation = ACTIVATIONS[kind]

    @classmethod
    def of(cls, part: Part) -> Convolution:
        """Return that of a convolution with a norm, which a file may have as one already."""
        return cls(part.part("conv"), part.part("bn") if part.has("bn") else None, part.part("act"))

    def forward(self, x_BCYX: Tensor) -> Tensor:
        x_BCYX = F.conv2d(x_BCYX, self.weight, self.bias, *self.options)
        return x_BCYX if self.activation is None else self.activation(x_BCYX)


class Named(Module):
    """The base of modules that hold the same modules as in the file, under the same names."""

    def __init__(self, part: Part, *names: str) -> None:
        super().__init__()
        for name in names:
            setattr(self, name, build(part.part(name)))


class Bottleneck(Named):
    """Two convolutions, added to their input where the file says so."""

    def __init__(self, part: Part) -> None:
        super().__init__(part, "cv1", "cv2")
        self.adds = bool(part.get("add"))

    def forward(self, x_BCYX: Tensor) -> Tensor:
        inner = self.cv2(self.cv1(x_BCYX))
        return x_BCYX + inner if self.adds else inner


class C2f(Named):
    """Half of the channels go through blocks in turn; all that comes on the way is joined."""

    def __init__(self, part: Part) -> None:
        super().__init__(part, "cv1", "cv2", "m")

    def forward(self, x_BCYX: Tensor) -> Tensor:
        maps = list(self.cv1(x_BCYX).chunk(2, 1))
        for block in self.m:
            maps.append(block(maps[-1]))
        return self.cv2(apply(cat, maps, 1))


class C3(Named):
    """A path through blocks and one without are joined."""

    def __init__(self, part: Part) -> None:
        super().__init__(part, "cv1", "cv2", "cv3", "m")

    def forward(self, x_BCYX: Tensor) -> Tensor:
        return self.cv3(apply(cat, (self.m(self.cv1(x_BCYX)), self.cv2(x_BCYX)), 1))


class SPPF(Named):
    """A map and its maxima over larger and larger squares are joined."""

    def __init__(self, part: Part) -> None:
        super().__init__(part, "cv1", "cv2")
        self.size = part.part("m").number("kernel_size", 5, MOST_SIZE, 1)
        self.steps = part.number("n", STEPS, MOST_STEPS)
        self.adds = bool(part.get("add"))

    def forward(self, x_BCYX: Tensor) -> Tensor:
        maps = [self.cv1(x_BCYX)]
        for _ in range(self.steps):
            maps.append(F.max_pool2d(maps[-1], self.size, 1, self.size // 2))
        found = self.cv2(apply(cat, maps, 1))
        return x_BCYX + found if self.adds else found


class Attention(Named):
    """Self-attention of the cells of a map, with a convolution of the values in place of positions."""

    def __init__(self, part: Part) -> None:
        super().__init__(part, "qkv", "proj", "pe")
        self.heads, self.width = part.get("num_heads"), part.get("head_dim")
        self.key_width = part.get("key_dim")

    def forward(self, x_BCYX: Tensor) -> Tensor:
        shape = x_BCYX.shape
        joined = self.qkv(x_BCYX).reshape(shape[0], self.heads, 2 * self.key_width + self.width, -1)
        q_BHKT, k_BHKT, v_BHDT = joined.split([self.key_width, self.key_width, self.width], 2)
        seen = F.scaled_dot_product_attention(q_BHKT.mT, k_BHKT.mT, v_BHDT.mT).mT.reshape(shape)
        return self.proj(seen + self.pe(v_BHDT.reshape(shape)))


class PSABlock(Named):
    """Attention, then convolutions, each added to its input where the file says so."""

    def __init__(self, part: Part) -> None:
        super().__init__(part, "attn", "ffn")
        self.adds = bool(part.get("add", True))

    def forward(self, x_BCYX: Tensor) -> Tensor:
        for step in (self.attn, self.ffn):
            x_BCYX = x_BCYX + step(x_BCYX) if self.adds else step(x_BCYX)
        return x_BCYX


class C2PSA(Named):
    """Half of the channels go through blocks with attention."""

    def __init__(self, part: Part) -> None:
        super().__init__(part, "cv1", "cv2", "m")

    def forward(self, x_BCYX: Tensor) -> Tensor:
        one, two = self.cv1(x_BCYX).chunk(2, 1)
        return self.cv2(apply(cat, (one, self.m(two)), 1))


class Upsample(Module):
    """Repeats rows and columns."""

    def __init__(self, part: Part) -> None:
        super().__init__()
        self.factor = part.number("scale_factor", 2.0, MOST_FACTOR, 1)

    def forward(self, x_BCYX: Tensor) -> Tensor:
        return F.interpolate(x_BCYX, scale_factor=self.factor, mode="nearest")


class Concat(Module):
    """Joins maps."""

    def __init__(self, part: Part) -> None:
        super().__init__()
        self.axis = part.get("d", 1)

    def forward(self, maps: list[Tensor]) -> Tensor:
        return apply(cat, maps, self.axis)


class Transposed(Module):
    """A transposed convolution."""

    def __init__(self, part: Part) -> None:
        super().__init__()
        self.weight, self.bias = Parameter(part.weight("weight")), Parameter(part.weight("bias"))
        self.options = part.number("stride", 2, MOST_FACTOR, 1), part.number("padding", 0, MOST_SIZE)

    def forward(self, x_BCYX: Tensor) -> Tensor:
        return F.conv_transpose2d(x_BCYX, self.weight, self.bias, *self.options)


class Proto(Named):
    """Maps of which masks are sums."""

    def __init__(self, part: Part) -> None:
        super().__init__(part, "cv1", "upsample", "cv2", "cv3")

    def forward(self, x_BCYX: Tensor) -> Tensor:
        return self.cv3(self.cv2(self.upsample(self.cv1(x_BCYX))))


class Detect(Named):
    """Boxes and scores of the cells of all scales, and with `proto` the coefficients of masks."""

    def __init__(self, part: Part) -> None:
        with_masks = part.has("proto")
        super().__init__(part, "cv2", "cv3", *(("cv4", "proto") if with_masks else ()))
        self.with_masks = with_masks
        self.strides: list[float] = [float(each) for each in part.get("stride").tolist()]
        if not all(1 <= each <= MOST_STRIDE for each in self.strides):
            raise CheckpointError(
                f"strides {self.strides!r:.80}; expected 1 to {MOST_STRIDE}", hint="the file is damaged"
            )

    def forward(self, maps: list[Tensor]) -> YoloOutput:
        boxes, scores, coefficients = [], [], []
        for i, (map_BCYX, stride) in enumerate(zip(maps, self.strides, strict=True)):
            boxes.append(edges(self.cv2[i](map_BCYX), stride))
            scores.append(self.cv3[i](map_BCYX).flatten(2).mT.sigmoid())
            if self.with_masks:
                coefficients.append(self.cv4[i](map_BCYX).flatten(2).mT)
        joined = apply(cat, boxes, 1), apply(cat, scores, 1)
        if not self.with_masks:
            return YoloOutput(*joined)
        return YoloOutput(*joined, apply(cat, coefficients, 1), self.proto(maps[0]))


def edges(logits_BCYX: Tensor, stride: float) -> Tensor:
    """Return boxes (B, P, 4) in pixels, from the distributions of the distances to the four edges from a cell's middle.

    Shapes:  logits (B, 4 · distances, Y, X)
    """
    batch, channels, height, width = logits_BCYX.shape
    count, device = channels // 4, logits_BCYX.device
    chances = logits_BCYX.reshape(batch, 4, count, height * width).softmax(2)
    distances_B4P = (chances * arange(count, device=device).float().reshape(1, 1, -1, 1)).sum(2)
    x = (arange(width, device=device).float() + 0.5)[None].expand(height, -1).flatten()
    y = (arange(height, device=device).float() + 0.5)[:, None].expand(-1, width).flatten()
    left, top, right, bottom = distances_B4P.unbind(1)
    return apply(stack, (x - left, y - top, x + right, y + bottom), -1) * stride


class Yolo(Module):
    """A model of a file.

    Args:
        part: the file's model.

    Attributes:
        labels: names of the kinds of objects.
        stride: of the coarsest scale; sides of pictures must be multiples of it.
    """

    def __init__(self, part: Part) -> None:
        super().__init__()
        layers = part.part("model").parts()
        if not layers or layers[-1].kind not in ("Detect", "Segment"):
            raise CheckpointError(
                "the last module of the model finds no objects", hint="pass a file for boxes or masks"
            )
        if layers[-1].get("end2end") or layers[-1].has("one2one_cv2"):
            raise CheckpointError("a model that suppresses boxes by itself", hint="pass a YOLOv8 or YOLO11 file")
        self.sources = [layer.get("f", -1) for layer in layers]
        self.layers = ModuleList(build(layer) for layer in layers)
        self.stride = int(max(self.layers[-1].strides))
        names = part.get("names")
        names = dict(enumerate(names)) if isinstance(names, list | tuple) else names
        if not isinstance(names, dict):
            raise CheckpointError("the model has no names of objects", hint="pass a file that training wrote")
        self.labels = tuple(str(names.get(i, i)) for i in range(len(names)))
        self.eval()

    def forward(self, pixels_BCYX: Tensor) -> YoloOutput:
        """Find objects in pictures with values of 0 to 1, whose sides are multiples of `stride`."""
        found: list[Any] = []
        for layer, source in zip(self.layers, self.sources, strict=True):
            before = found[-1] if found else pixels_BCYX
            if isinstance(source, list | tuple):
                before = [found[each] for each in source]
            elif source != -1:
                before = found[source]
            found.append(layer(before))
        return found[-1]


BUILDERS: dict[str, Callable[[Part], Module]] = {
    "Attention": Attention,
    "Bottleneck": Bottleneck,
    "C2PSA": C2PSA,
    "C2f": C2f,
    "C3": C3,
    "C3k": C3,
    "C3k2": C2f,
    "Concat": Concat,
    "Conv": Convolution.of,
    "Conv2d": Convolution,
    "ConvTranspose2d": Transposed,
    "DWConv": Convolution.of,
    "Detect": Detect,
    "ModuleList": lambda part: ModuleList(map(build, part.parts())),
    "PSABlock": PSABlock,
    "Proto": Proto,
    "SPPF": SPPF,
    "Segment": Detect,
    "Sequential": lambda part: Sequential(*map(build, part.parts())),
    "Upsample": Upsample,
}


def build(part: Part) -> Module:
    """Return the module for one of a file.  Raises: CheckpointError for one that tallow does not have"""
    if part.kind not in BUILDERS:
        raise CheckpointError(f"a module {part.kind!r:.80}", hint=f"tallow has {', '.join(BUILDERS)}")
    return BUILDERS[part.kind](part)
