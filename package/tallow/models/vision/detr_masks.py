"""DETR with a head for masks: which pixels each of the found objects has.

Loads Hugging Face folders of `DetrForSegmentation`.

Letters: B batch, C channels, Y and X cells, Q queries, H heads, K head width, D width.

Source:  Carion et al. 2020, arXiv:2005.12872, section 4.4; names as in the checkpoints
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from tallow.core.apply import apply
from tallow.core.tensor import Tensor
from tallow.errors import ArgumentError
from tallow.models.activations import activation_named
from tallow.models.vision.detr import DetrConfig, DetrForObjectDetection, DetrPretrainedModel
from tallow.nn import functional as F
from tallow.nn.channel_normalization import GroupNorm
from tallow.nn.convolution import Conv2d
from tallow.nn.linear import Linear
from tallow.nn.module import Module
from tallow.ops.joining import cat

GROUPS = 8  # of a norm, at most
MAPS = 3  # of the backbone, that the head reads besides the one that the model reads


class AttentionMap(Module):
    """softmax(q · k) of each query and head over all cells, and over the heads."""

    def __init__(self, config: DetrConfig, device: Any, dtype: Any) -> None:
        super().__init__()
        self.heads = config.encoder_attention_heads
        self.q_linear = Linear(config.d_model, config.d_model, device=device, dtype=dtype)
        self.k_linear = Linear(config.d_model, config.d_model, device=device, dtype=dtype)

    def forward(self, queries_BQD: Tensor, cells_BTD: Tensor, mask: Tensor | None) -> Tensor:
        """Return weights (B, Q, H, T).  Args: mask: (B, 1, 1, T), False for padding; None for none"""
        q_BQHK = self.q_linear(queries_BQD).unflatten(-1, (self.heads, -1))
        k_BTHK = self.k_linear(cells_BTD).unflatten(-1, (self.heads, -1))
        scores_BHQT = (q_BQHK * q_BQHK.shape[-1] ** -0.5).transpose(1, 2) @ k_BTHK.permute(0, 2, 3, 1)
        scores_BQHT = scores_BHQT.transpose(1, 2)
        if mask is not None:
            scores_BQHT = scores_BQHT.masked_fill(~mask, float("-inf"))
        return scores_BQHT.flatten(2).softmax(-1).reshape(*scores_BQHT.shape)


class MaskHead(Module):
    """Convolutions of the attention of each query, with the maps of the backbone from the last to the first."""

    def __init__(self, config: DetrConfig, device: Any, dtype: Any) -> None:
        super().__init__()
        factory = {"device": device, "dtype": dtype}
        width, first = config.d_model, config.d_model + config.encoder_attention_heads
        sizes = [first, first, *(width // part for part in (2, 4, 8, 16))]
        for number, (before, after) in enumerate(pairwise(sizes), 1):
            setattr(self, f"lay{number}", Conv2d(before, after, 3, padding=1, **factory))
            setattr(self, f"gn{number}", GroupNorm(min(GROUPS, after), after, **factory))
        self.out_lay = Conv2d(sizes[-1], 1, 3, padding=1, **factory)
        for number, channels in enumerate(config.map_sizes[::-1][-MAPS:], 1):
            setattr(self, f"adapter{number}", Conv2d(channels, sizes[number + 1], 1, **factory))
        self.activation = activation_named(config.activation_function)

    def forward(self, cells_BDYX: Tensor, attention_BQHYX: Tensor, maps: Sequence[Tensor]) -> Tensor:
        """Return masks (B, Q, Y, X) of the size of the last of `maps`."""
        queries = attention_BQHYX.shape[1]

        def repeated(map_BCYX: Tensor) -> Tensor:
            return map_BCYX[:, None].expand(-1, queries, -1, -1, -1).flatten(0, 1)

        x = apply(cat, (repeated(cells_BDYX), attention_BQHYX.flatten(0, 1)), 1)
        x = self._layer(2, self._layer(1, x))
        for number, map_BCYX in enumerate(maps, 1):
            seen = repeated(getattr(self, f"adapter{number}")(map_BCYX))
            x = self._layer(number + 2, seen + F.interpolate(x, size=tuple(seen.shape[-2:]), mode="nearest"))
        return self.out_lay(x)[:, 0].unflatten(0, (-1, queries))

    def _layer(self, number: int, x: Tensor) -> Tensor:
        return self.activation(getattr(self, f"gn{number}")(getattr(self, f"lay{number}")(x)))


class SegmentationOutput(NamedTuple):
    """Output of a model of objects and their masks.

    Shapes:  as DetectionOutput; pred_masks (B, Q, Y, X), logits
    """

    logits: Tensor
    pred_boxes: Tensor
    pred_masks: Tensor
    last_hidden_state: Tensor
    encoder_last_hidden_state: Tensor


class DetrForSegmentation(DetrPretrainedModel):
    """Finds objects and their masks: a label, or none, a box and a mask for each query.

    Args:    as DetrModel
    Raises:  ArgumentError for sizes that the head cannot have
    """

    def __init__(self, config: DetrConfig, device: Any = None, dtype: Any = None) -> None:
        super().__init__(config)
        width, heads = config.d_model, config.encoder_attention_heads
        if (width + heads) % GROUPS or width < 2 * GROUPS or len(config.map_sizes) < MAPS:
            raise ArgumentError(
                f"DetrForSegmentation: d_model={width}, {heads} heads, {len(config.map_sizes)} maps of the backbone",
                hint="d_model plus heads is a multiple of 8, and out_features of the backbone names three stages",
            )
        self.detr = DetrForObjectDetection(config, device, dtype)
        self.mask_head = MaskHead(config, device, dtype)
        self.bbox_attention = AttentionMap(config, device, dtype)
        self.reset_parameters()

    def is_superfluous(self, name: str) -> bool:
        return name.endswith(".num_batches_tracked")

    def adapt(self, state: Any) -> dict[str, Any]:
        return dict(state)

    def forward(self, pixel_values: Tensor, pixel_mask: Tensor | None = None) -> SegmentationOutput:
        """Return labels, boxes and masks.  Args, shapes, raises: as `DetrModel.forward`"""
        model, maps = self.detr.model, []
        eyes = model.backbone.conv_encoder.model
        hook = eyes.register_forward_hook(lambda _, __, output: maps.extend(output))
        cells: list[Tensor] = []
        other = model.input_projection.register_forward_hook(lambda _, __, output: cells.append(output))
        try:
            found = self.detr(pixel_values, pixel_mask)
        finally:
            hook.remove()
            other.remove()
        height, width = cells[0].shape[2:]
        mask = model.cell_mask(pixel_mask, (height, width))
        attention = self.bbox_attention(found.last_hidden_state, found.encoder_last_hidden_state, mask)
        attention = attention.unflatten(-1, (height, width))
        masks = self.mask_head(cells[0], attention, maps[MAPS - 1 :: -1])
        return SegmentationOutput(
            found.logits, found.pred_boxes, masks, found.last_hidden_state, found.encoder_last_hidden_state
        )
