"""Results of single models, as `modeling_outputs` has those of kinds of models."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tallow.core.tensor import Tensor
from tallow.transformers.modeling_outputs import BaseModelOutputWithPooling, ModelOutput, Tensors


@dataclass
class GPT2DoubleHeadsModelOutput(ModelOutput):
    """The result of a language model that also scores choices."""

    loss: Tensor | None = None
    mc_loss: Tensor | None = None
    logits: Tensor | None = None
    mc_logits: Tensor | None = None
    past_key_values: Any = None
    hidden_states: Tensors | None = None
    attentions: Tensors | None = None


@dataclass
class DetrObjectDetectionOutput(ModelOutput):
    """The result of a DETR."""

    loss: Tensor | None = None
    loss_dict: dict[str, Tensor] | None = None
    logits: Tensor | None = None
    pred_boxes: Tensor | None = None
    auxiliary_outputs: list[dict[str, Tensor]] | None = None
    last_hidden_state: Tensor | None = None
    decoder_hidden_states: Tensors | None = None
    decoder_attentions: Tensors | None = None
    cross_attentions: Tensors | None = None
    encoder_last_hidden_state: Tensor | None = None
    encoder_hidden_states: Tensors | None = None
    encoder_attentions: Tensors | None = None


@dataclass
class DetrSegmentationOutput(ModelOutput):
    """The result of a DETR with masks."""

    loss: Tensor | None = None
    loss_dict: dict[str, Tensor] | None = None
    logits: Tensor | None = None
    pred_boxes: Tensor | None = None
    pred_masks: Tensor | None = None
    auxiliary_outputs: list[dict[str, Tensor]] | None = None
    last_hidden_state: Tensor | None = None
    decoder_hidden_states: Tensors | None = None
    decoder_attentions: Tensors | None = None
    cross_attentions: Tensors | None = None
    encoder_last_hidden_state: Tensor | None = None
    encoder_hidden_states: Tensors | None = None
    encoder_attentions: Tensors | None = None


@dataclass
class CLIPTextModelOutput(ModelOutput):
    """The result of CLIP's encoder of texts with its projection."""

    text_embeds: Tensor | None = None
    last_hidden_state: Tensor | None = None
    hidden_states: Tensors | None = None
    attentions: Tensors | None = None


@dataclass
class CLIPVisionModelOutput(ModelOutput):
    """The result of CLIP's encoder of images with its projection."""

    image_embeds: Tensor | None = None
    last_hidden_state: Tensor | None = None
    hidden_states: Tensors | None = None
    attentions: Tensors | None = None


@dataclass
class CLIPOutput(ModelOutput):
    """The result of CLIP: how well each image fits each text."""

    loss: Tensor | None = None
    logits_per_image: Tensor | None = None
    logits_per_text: Tensor | None = None
    text_embeds: Tensor | None = None
    image_embeds: Tensor | None = None
    text_model_output: BaseModelOutputWithPooling | None = None
    vision_model_output: BaseModelOutputWithPooling | None = None

    def to_tuple(self) -> tuple[Any, ...]:
        """Return the fields that are not None; results in them as tuples too."""
        return tuple(value.to_tuple() if isinstance(value, ModelOutput) else value for value in self.values())
