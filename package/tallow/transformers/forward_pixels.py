"""`forward` of models that tell something of each pixel, depths and labels, under transformers' names.

Letters: B batch, C channels, Y and X pixels or cells, D width, N labels.
"""

from __future__ import annotations

from typing import Any

from tallow.core.tensor import Tensor
from tallow.nn import functional as F
from tallow.transformers import losses
from tallow.transformers.capture import capturing
from tallow.transformers.forward_common import Options
from tallow.transformers.modeling_outputs import (
    BaseModelOutput,
    DepthEstimatorOutput,
    ImageClassifierOutput,
    SemanticSegmenterOutput,
)


class DepthForward:
    """Depths by a backbone, a neck and a head."""

    main_input_name = "pixel_values"

    def forward(
        self,
        pixel_values: Tensor,
        output_attentions: bool | None = None,
        output_hidden_states: bool | None = None,
        return_dict: bool | None = None,
        **kwargs: Any,
    ) -> Any:
        """Return the depths (B, Y, X) of pixels, and the states of the backbone.

        Args:
            pixel_values: (B, C, Y, X).
            output_attentions, output_hidden_states, return_dict: None means as the config says.

        Raises:  ArgumentError, ShapeError
        """
        options = Options(self, output_hidden_states, output_attentions, return_dict, kwargs)
        with options.capture(self.backbone) as captured:  # type: ignore[attr-defined]
            depths = self.core_forward(pixel_values)  # type: ignore[attr-defined]
        states = {"hidden_states": captured.hidden_states(), "attentions": captured.attentions()}
        return options.result(DepthEstimatorOutput, predicted_depth=depths, **states)


class StagesForward:
    """The base of SegFormers, whose hidden states are the maps (B, D, Y, X) of the stages."""

    config: Any
    main_input_name = "pixel_values"

    def _see(self, options: Options, pixels: Tensor) -> tuple[Any, dict[str, Any]]:
        """Return the output of the stages, and the maps and attentions that were asked for."""
        base = getattr(self, "segformer", None)
        with capturing(self if base is None else base, hidden=False, weights=options.attentions) as captured:  # type: ignore[arg-type]
            stages = self.core_forward(pixels) if base is None else base(pixels)  # type: ignore[attr-defined]
        maps = stages.hidden_states if options.hidden else None
        return stages, {"hidden_states": maps, "attentions": captured.attentions()}


class StagesModelForward(StagesForward):
    """A SegFormer without a head."""

    def forward(
        self,
        pixel_values: Tensor,
        output_attentions: bool | None = None,
        output_hidden_states: bool | None = None,
        return_dict: bool | None = None,
        **kwargs: Any,
    ) -> Any:
        """Return the map (B, D, Y, X) of the last stage.

        Args:
            pixel_values: (B, C, Y, X).
            output_attentions, output_hidden_states, return_dict: None means as the config says.

        Raises:  ArgumentError, ShapeError
        """
        options = Options(self, output_hidden_states, output_attentions, return_dict, kwargs)
        stages, states = self._see(options, pixel_values)
        return options.result(BaseModelOutput, last_hidden_state=stages.last_hidden_state, **states)


class StagesClassifierForward(StagesForward):
    """Labels images by a SegFormer."""

    def forward(
        self,
        pixel_values: Tensor,
        labels: Tensor | None = None,
        output_attentions: bool | None = None,
        output_hidden_states: bool | None = None,
        return_dict: bool | None = None,
        **kwargs: Any,
    ) -> Any:
        """Return logits (B, N) of images, and with labels (B,) or (B, N) the loss. Others as without a head."""
        options = Options(self, output_hidden_states, output_attentions, return_dict, kwargs)
        stages, states = self._see(options, pixel_values)
        logits = self.of_stages(stages)  # type: ignore[attr-defined]
        loss = None if labels is None else losses.of_texts(logits, labels, self.config, options.count)
        return options.result(ImageClassifierOutput, loss=loss, logits=logits, **states)


class PixelLabelsForward(StagesForward):
    """Labels pixels by a SegFormer."""

    def forward(
        self,
        pixel_values: Tensor,
        labels: Tensor | None = None,
        output_attentions: bool | None = None,
        output_hidden_states: bool | None = None,
        return_dict: bool | None = None,
        **kwargs: Any,
    ) -> Any:
        """Return logits (B, N, Y, X) of cells, and with labels (B, Y, X) of pixels the loss. Others as without a head.

        Labels that equal the config's `semantic_loss_ignore_index` do not count.
        """
        options = Options(self, output_hidden_states, output_attentions, return_dict, kwargs)
        stages, states = self._see(options, pixel_values)
        logits = self.of_stages(stages)  # type: ignore[attr-defined]
        loss = None if labels is None else self._loss(logits, labels)
        return options.result(SemanticSegmenterOutput, loss=loss, logits=logits, **states)

    def _loss(self, logits_BNYX: Tensor, labels_BYX: Tensor) -> Tensor:
        size, left_out = tuple(labels_BYX.shape[-2:]), self.config.semantic_loss_ignore_index
        logits_BNYX = F.interpolate(logits_BNYX, size=size, mode="bilinear", align_corners=False)
        if self.config.num_labels > 1:
            return F.cross_entropy(logits_BNYX, labels_BYX, ignore_index=left_out)
        counts = ((labels_BYX >= 0) & (labels_BYX != left_out)).float()
        each = F.binary_cross_entropy_with_logits(logits_BNYX.squeeze(1), labels_BYX.float(), reduction="none")
        return (each * counts).mean()
