"""`forward` of encoders of images, and of CLIP, under transformers' names.

Letters: B batch, C channels, Y and X pixels, T positions, D width, N labels, E width of the shared vectors.
"""

from __future__ import annotations

from typing import Any

from tallow.core.tensor import Tensor
from tallow.errors import ArgumentError
from tallow.models.vision.dinov2 import Dinov2PretrainedModel
from tallow.models.vision.resnet import ResNetPretrainedModel
from tallow.nn import functional as F
from tallow.transformers import losses
from tallow.transformers.forward_common import Options, check_texts
from tallow.transformers.forward_encoders import Encoded
from tallow.transformers.modeling_outputs import (
    BackboneOutput,
    BaseModelOutputWithPooling,
    ImageClassifierOutput,
    MaskedImageModelingOutput,
)
from tallow.transformers.modeling_outputs_models import CLIPOutput, CLIPTextModelOutput, CLIPVisionModelOutput


class ImageForward:
    """The base of encoders of images. Those of ResNets are maps (B, D, Y, X), and they have no attentions."""

    config: Any
    main_input_name = "pixel_values"

    def _see(self, options: Options, pixels: Tensor, interpolate: bool, **arguments: Any) -> Encoded:
        any_size = isinstance(self, Dinov2PretrainedModel | ResNetPretrainedModel)  # takes images of any size by itself
        arguments |= {} if any_size else {"interpolate_pos_encoding": interpolate}
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


class MaskedImageForward(ImageForward):
    """Restores images of which patches are masked."""

    def forward(
        self,
        pixel_values: Tensor,
        bool_masked_pos: Tensor | None = None,
        interpolate_pos_encoding: bool = False,
        output_attentions: bool | None = None,
        output_hidden_states: bool | None = None,
        return_dict: bool | None = None,
        **kwargs: Any,
    ) -> Any:
        """Return restored images (B, C, Y, X), and with `bool_masked_pos` the loss of the masked patches.

        Args:    bool_masked_pos: (B, patches), True for those that are masked. Others as without a head
        Raises:  ArgumentError if the decoder restores another number of pixels than a patch has; ShapeError
        """
        options = Options(self, output_hidden_states, output_attentions, return_dict, kwargs)
        config, loss = self.config, None
        if bool_masked_pos is not None and config.patch_size != config.encoder_stride:
            raise ArgumentError(
                f"bool_masked_pos with patch_size={config.patch_size} and encoder_stride={config.encoder_stride}",
                hint="the loss needs as many restored pixels as a patch has: set both to the same number",
            )
        done = self._see(options, pixel_values, interpolate_pos_encoding, bool_masked_pos=bool_masked_pos)
        if bool_masked_pos is not None:
            loss = losses.of_masked_patches(pixel_values, done.result, bool_masked_pos, config)
        return options.result(MaskedImageModelingOutput, loss=loss, reconstruction=done.result, **done.states)


class BackboneForward(ImageForward):
    """The eyes of another model.

    Attributes:
        num_features: the channels of the map of each stage.
    """

    num_features: list[int]

    def forward(
        self,
        pixel_values: Tensor,
        output_attentions: bool | None = None,
        output_hidden_states: bool | None = None,
        return_dict: bool | None = None,
        **kwargs: Any,
    ) -> Any:
        """Return the maps of `config.out_features`.  Args, raises: as without a head"""
        options = Options(self, output_hidden_states, output_attentions, return_dict, kwargs)
        done = self._see(options, pixel_values, True)
        return options.result(BackboneOutput, feature_maps=done.result, **done.states)

    @property
    def stage_names(self) -> list[str]:
        """The names of all stages."""
        names: list[str] = self.config.stage_names
        return names

    @property
    def out_features(self) -> list[str]:
        """The names of the stages whose maps are returned. They can be set."""
        names: list[str] = self.config.out_features
        return names

    @out_features.setter
    def out_features(self, names: list[str]) -> None:
        self.config.out_features = names

    @property
    def out_indices(self) -> list[int]:
        """The places of those stages among all. They can be set."""
        places: list[int] = self.config.out_indices
        return places

    @out_indices.setter
    def out_indices(self, places: list[int]) -> None:
        self.config.out_indices = places

    @property
    def out_feature_channels(self) -> dict[str, int]:
        """The channels of each stage, by its name."""
        return dict(zip(self.stage_names, self.num_features, strict=True))

    @property
    def channels(self) -> list[int]:
        """The channels of the maps that are returned."""
        return [self.out_feature_channels[name] for name in self.out_features]


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
