"""`forward` of encoders of images, and of CLIP, under transformers' names.

Letters: B batch, C channels, Y and X pixels, T positions, D width, N labels, E width of the shared vectors.
"""

from __future__ import annotations

from typing import Any

from tallow.core.tensor import Tensor
from tallow.models.vision.dinov2 import Dinov2PretrainedModel
from tallow.models.vision.resnet import ResNetPretrainedModel
from tallow.nn import functional as F
from tallow.transformers import losses
from tallow.transformers.forward_common import Options, check_texts
from tallow.transformers.forward_encoders import Encoded
from tallow.transformers.modeling_outputs import (
    BaseModelOutputWithPooling,
    CLIPOutput,
    CLIPTextModelOutput,
    CLIPVisionModelOutput,
    ImageClassifierOutput,
)


class ImageForward:
    """The base of encoders of images. Those of ResNets are maps (B, D, Y, X), and they have no attentions."""

    config: Any
    main_input_name = "pixel_values"

    def _see(self, options: Options, pixels: Tensor, interpolate: bool) -> Encoded:
        any_size = isinstance(self, Dinov2PretrainedModel | ResNetPretrainedModel)  # takes images of any size by itself
        arguments = {} if any_size else {"interpolate_pos_encoding": interpolate}
        with options.capture(self) as captured:  # type: ignore[arg-type]
            result = self.core_forward(pixels, **arguments)  # type: ignore[attr-defined]
        return Encoded(result, captured.hidden_states(), captured.attentions())


class ImageModelForward(ImageForward):
    """An encoder of images without a head."""

    def forward(
        self,
        pixel_values: Tensor,
        interpolate_pos_encoding: bool = False,
        output_attentions: bool | None = None,
        output_hidden_states: bool | None = None,
        return_dict: bool | None = None,
        **kwargs: Any,
    ) -> Any:
        """Return the hidden states (B, T, D) of images, and one vector for each.

        Args:
            pixel_values: (B, C, Y, X).
            interpolate_pos_encoding: take images of any size.
            output_attentions, output_hidden_states, return_dict: None means as the config says.

        Raises:  ArgumentError, ShapeError
        """
        options = Options(self, output_hidden_states, output_attentions, return_dict, kwargs)
        done = self._see(options, pixel_values, interpolate_pos_encoding)
        hidden, pooled = done.result
        return options.result(BaseModelOutputWithPooling, last_hidden_state=hidden, pooler_output=pooled, **done.states)


class ImageClassifierForward(ImageForward):
    """Labels images."""

    def forward(
        self,
        pixel_values: Tensor,
        labels: Tensor | None = None,
        interpolate_pos_encoding: bool = False,
        output_attentions: bool | None = None,
        output_hidden_states: bool | None = None,
        return_dict: bool | None = None,
        **kwargs: Any,
    ) -> Any:
        """Return logits (B, N) of images, and with labels (B,) or (B, N) the loss. Others as without a head."""
        options = Options(self, output_hidden_states, output_attentions, return_dict, kwargs)
        done = self._see(options, pixel_values, interpolate_pos_encoding)
        loss = None if labels is None else losses.of_texts(done.result, labels, self.config, options.count)
        return options.result(ImageClassifierOutput, loss=loss, logits=done.result, **done.states)


class ProjectedImageForward(ImageForward):
    """CLIP's encoder of images with its projection."""

    def forward(
        self,
        pixel_values: Tensor,
        interpolate_pos_encoding: bool = False,
        output_attentions: bool | None = None,
        output_hidden_states: bool | None = None,
        return_dict: bool | None = None,
        **kwargs: Any,
    ) -> Any:
        """Return the vectors (B, E) of images, and hidden states. Arguments as without the projection."""
        options = Options(self, output_hidden_states, output_attentions, return_dict, kwargs)
        done = self._see(options, pixel_values, interpolate_pos_encoding)
        vectors, hidden = done.result
        return options.result(CLIPVisionModelOutput, image_embeds=vectors, last_hidden_state=hidden, **done.states)


class CLIPTextForward:
    """CLIP's encoder of texts, with or without its projection."""

    output_class: Any = BaseModelOutputWithPooling
    field_names = ("last_hidden_state", "pooler_output")

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        output_attentions: bool | None = None,
        output_hidden_states: bool | None = None,
        return_dict: bool | None = None,
        **kwargs: Any,
    ) -> Any:
        """Return the hidden states (B, T, D) of texts, and one vector for each.

        Args:
            input_ids, attention_mask: (B, T).
            output_attentions, output_hidden_states, return_dict: None means as the config says.

        Raises:  ArgumentError
        """
        options = Options(self, output_hidden_states, output_attentions, return_dict, kwargs)
        check_texts(self, input_ids, None, attention_mask)
        with options.capture(self) as captured:  # type: ignore[arg-type]
            result = self.core_forward(input_ids, attention_mask)  # type: ignore[attr-defined]
        done = Encoded(result, captured.hidden_states(), captured.attentions())
        return options.result(self.output_class, **dict(zip(self.field_names, result, strict=True)), **done.states)


class ProjectedTextForward(CLIPTextForward):
    """CLIP's encoder of texts with its projection."""

    output_class = CLIPTextModelOutput
    field_names = ("text_embeds", "last_hidden_state")


class CLIPForward:
    """CLIP: how well images fit texts."""

    config: Any
    text_model: Any
    vision_model: Any
    text_projection: Any
    visual_projection: Any
    logit_scale: Any

    def _part(self, tower: Any, options: Options, *args: Any, **kwargs: Any) -> BaseModelOutputWithPooling:
        """Run one of the encoders."""
        with options.capture(tower) as captured:
            hidden, pooled = tower(*args, **kwargs)
        done = Encoded(None, captured.hidden_states(), captured.attentions())
        return BaseModelOutputWithPooling(last_hidden_state=hidden, pooler_output=pooled, **done.states)

    def get_text_features(
        self, input_ids: Tensor, attention_mask: Tensor | None = None, return_dict: bool | None = None, **kwargs: Any
    ) -> Any:
        """Return the result of the encoder of texts; its `pooler_output` has the projected vectors (B, E)."""
        options = Options(self, None, None, return_dict, kwargs)
        texts = self._part(self.text_model, options, input_ids, attention_mask)
        texts.pooler_output = self.text_projection(texts.pooler_output)
        return texts if options.return_dict else texts.to_tuple()

    def get_image_features(
        self,
        pixel_values: Tensor,
        interpolate_pos_encoding: bool = False,
        return_dict: bool | None = None,
        **kwargs: Any,
    ) -> Any:
        """Return the result of the encoder of images; its `pooler_output` has the projected vectors (B, E)."""
        options = Options(self, None, None, return_dict, kwargs)
        size = {"interpolate_pos_encoding": interpolate_pos_encoding}
        images = self._part(self.vision_model, options, pixel_values, **size)
        images.pooler_output = self.visual_projection(images.pooler_output)
        return images if options.return_dict else images.to_tuple()

    def forward(
        self,
        input_ids: Tensor,
        pixel_values: Tensor,
        attention_mask: Tensor | None = None,
        return_loss: bool | None = None,
        interpolate_pos_encoding: bool = False,
        output_attentions: bool | None = None,
        output_hidden_states: bool | None = None,
        return_dict: bool | None = None,
        **kwargs: Any,
    ) -> Any:
        """Return how well each image fits each text, and with `return_loss` the loss of pairs.

        Args:
            input_ids, attention_mask: (B, T).
            pixel_values: (I, C, Y, X).
            output_attentions, output_hidden_states, return_dict: None means as the config says.
        """
        options = Options(self, output_hidden_states, output_attentions, return_dict, kwargs)
        texts = self._part(self.text_model, options, input_ids, attention_mask)
        size = {"interpolate_pos_encoding": interpolate_pos_encoding}
        images = self._part(self.vision_model, options, pixel_values, **size)
        texts.pooler_output = self.text_projection(texts.pooler_output)
        images.pooler_output = self.visual_projection(images.pooler_output)
        text_embeds = F.normalize(texts.pooler_output, dim=-1)
        image_embeds = F.normalize(images.pooler_output, dim=-1)
        logits_per_text = text_embeds @ image_embeds.T * self.logit_scale.exp()
        return options.result(
            CLIPOutput,
            loss=losses.contrastive(logits_per_text) if return_loss else None,
            logits_per_image=logits_per_text.T,
            logits_per_text=logits_per_text,
            text_embeds=text_embeds,
            image_embeds=image_embeds,
            text_model_output=texts,
            vision_model_output=images,
        )
