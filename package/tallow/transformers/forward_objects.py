"""`forward` of models that find objects in images, under transformers' names.

Letters: B batch, C channels, Y and X pixels, T cells of the map, Q queries, D width, N labels.
"""

from __future__ import annotations

from typing import Any

from tallow.core.apply import apply
from tallow.core.tensor import Tensor
from tallow.ops.joining import stack
from tallow.transformers.capture import capturing
from tallow.transformers.forward_common import Options
from tallow.transformers.modeling_outputs import Seq2SeqModelOutput
from tallow.transformers.modeling_outputs_models import DetrObjectDetectionOutput, DetrSegmentationOutput


class DetrModelForward:
    """DETR without its heads."""

    config: Any
    main_input_name = "pixel_values"

    def forward(
        self,
        pixel_values: Tensor,
        pixel_mask: Tensor | None = None,
        output_attentions: bool | None = None,
        output_hidden_states: bool | None = None,
        return_dict: bool | None = None,
        **kwargs: Any,
    ) -> Any:
        """Return the hidden states of the queries (B, Q, D) and of the encoder (B, T, D).

        Args:
            pixel_values: (B, C, Y, X).
            pixel_mask: (B, Y, X), 1 where a picture is and 0 where it was padded; None means no padding.
            output_attentions, output_hidden_states, return_dict: None means as the config says.

        Raises:  ArgumentError, ShapeError
        """
        options = Options(self, output_hidden_states, output_attentions, return_dict, kwargs)
        (hidden, cells), states = self._find(options, pixel_values, pixel_mask)
        return options.result(
            Seq2SeqModelOutput, last_hidden_state=hidden, encoder_last_hidden_state=cells, **states(hidden)
        )

    def _find(self, options: Options, pixels: Tensor, mask: Tensor | None) -> tuple[Any, Any]:
        """Return the result of the model, and a function from its last states to those of the layers."""
        detector: Any = getattr(self, "detr", self)
        whole: Any = getattr(detector, "model", detector)
        kept = {"hidden": options.hidden}
        with (
            capturing(whole.encoder, **kept, weights=False) as encoded,
            capturing(whole.decoder, **kept, weights=options.attentions) as decoded,  # the encoder's come first
        ):
            result = self.core_forward(pixels, mask)  # type: ignore[attr-defined]
        layers = self.config.encoder_layers

        def states(last: Tensor) -> dict[str, Any]:
            return {
                "decoder_hidden_states": decoded.hidden_states(last),
                "decoder_attentions": decoded.attentions(layers, 2),
                "cross_attentions": decoded.attentions(layers + 1, 2),
                "encoder_hidden_states": encoded.hidden_states(),
                "encoder_attentions": tuple(decoded.weights[:layers]) or None,
            }

        return result, states


class DetrForward(DetrModelForward):
    """DETR."""

    output_class: Any = DetrObjectDetectionOutput

    @property
    def _detector(self) -> Any:
        """The model with the heads for labels and boxes."""
        return self

    def forward(  # type: ignore[override]  # as transformers: labels before the outputs of layers
        self,
        pixel_values: Tensor,
        pixel_mask: Tensor | None = None,
        labels: Any = None,
        output_attentions: bool | None = None,
        output_hidden_states: bool | None = None,
        return_dict: bool | None = None,
        **kwargs: Any,
    ) -> Any:
        """Return the logits (B, Q, N + 1), the last one for no object, boxes (B, Q, 4), and with labels the loss.

        Boxes are the centre, width and height, as parts of the picture.

        Args:
            labels: a dictionary for each picture, with `class_labels` (objects,) and `boxes` (objects, 4); for masks
                also `masks` (objects, Y, X).
            others: as without the heads.

        Raises:  ArgumentError for labels that do not fit; ShapeError
        """
        options = Options(self, output_hidden_states, output_attentions, return_dict, kwargs)
        detector, layers = self._detector, []
        norm = detector.model.decoder.layernorm.register_forward_hook(lambda _, __, output: layers.append(output))
        try:
            found, states = self._find(options, pixel_values, pixel_mask)
        finally:
            norm.remove()
        values, trained = found._asdict(), {}
        if labels is not None:
            inputs = [labels, pixel_values.device, *(v for n, v in values.items() if n in ("pred_boxes", "pred_masks"))]
            each: list[Any] = [None, None]
            if self.config.auxiliary_loss:
                stacked = apply(stack, layers[:-1])
                each = [detector.class_labels_classifier(stacked), detector.bbox_predictor(stacked).sigmoid()]
            loss, parts, others = self.loss_function(values["logits"], *inputs, self.config, *each)  # type: ignore[attr-defined]
            trained = {"loss": loss, "loss_dict": parts, "auxiliary_outputs": others}
        return options.result(self.output_class, **trained, **values, **states(found.last_hidden_state))


class DetrMasksForward(DetrForward):
    """DETR with a head for masks."""

    output_class = DetrSegmentationOutput
    detr: Any

    @property
    def _detector(self) -> Any:
        return self.detr
