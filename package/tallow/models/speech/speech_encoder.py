"""The encoder of waveforms that wav2vec2, HuBERT and WavLM share: convolutions, then a transformer.

Letters: B batch, N samples, C channels, T frames, D width, H heads, K width of a head.

Source:  Baevski et al. 2020, arXiv:2006.11477; names as in transformers' `modeling_wav2vec2.py`
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple

import numpy as np

from tallow import devices
from tallow.core.creation import from_numpy
from tallow.core.tensor import Tensor
from tallow.errors import ShapeError
from tallow.functions.sampling import rand
from tallow.models.activations import activation_named
from tallow.models.pretrained import PretrainedModel
from tallow.models.speech.speech_config import SpeechConfig
from tallow.nn import functional as F
from tallow.nn import init
from tallow.nn.attention import key_mask, merge_heads, split_heads
from tallow.nn.channel_normalization import GroupNorm
from tallow.nn.container import ModuleList
from tallow.nn.convolution import Conv1d
from tallow.nn.dropout import Dropout
from tallow.nn.linear import Linear
from tallow.nn.module import Module
from tallow.nn.normalization import LayerNorm
from tallow.nn.parameter import empty_parameter
from tallow.nn.utils.parametrizations import weight_norm

MASKED = "masked_spec_embed"  # what training puts in the place of hidden frames; files may lack it


class SpeechOutput(NamedTuple):
    """The output of a model without a head.

    Shapes:  last_hidden_state (B, T, D); extract_features (B, T, C), of the convolutions
    """

    last_hidden_state: Tensor
    extract_features: Tensor


class ConvLayer(Module):
    """A convolution with or without a norm, then an activation."""

    def __init__(self, config: SpeechConfig, index: int, device: Any, dtype: Any) -> None:
        super().__init__()
        channels = config.conv_dim[index]
        before = config.conv_dim[index - 1] if index else 1
        factory = {"device": device, "dtype": dtype}
        kernel, step = config.conv_kernel[index], config.conv_stride[index]
        self.conv = Conv1d(before, channels, kernel, step, bias=config.conv_bias, **factory)
        self.layer_norm: Module | None = None
        self.is_of_frames = config.feat_extract_norm == "layer"
        if self.is_of_frames:
            self.layer_norm = LayerNorm(channels, **factory)
        elif index == 0:
            self.layer_norm = GroupNorm(channels, channels, **factory)
        self.activation = activation_named(config.feat_extract_activation)

    def forward(self, x_BCT: Tensor) -> Tensor:
        x_BCT = self.conv(x_BCT)
        if self.layer_norm is not None:
            x_BCT = self.layer_norm(x_BCT.mT).mT if self.is_of_frames else self.layer_norm(x_BCT)
        return self.activation(x_BCT)


class FeatureEncoder(Module):
    """The convolutions, from samples to frames."""

    def __init__(self, config: SpeechConfig, device: Any, dtype: Any) -> None:
        super().__init__()
        layers = range(len(config.conv_dim))
        self.conv_layers = ModuleList(ConvLayer(config, index, device, dtype) for index in layers)

    def forward(self, sound_BN: Tensor) -> Tensor:
        x_BCT = sound_BN[:, None]
        for layer in self.conv_layers:
            x_BCT = layer(x_BCT)
        return x_BCT.mT


class FeatureProjection(Module):
    """The frames of the convolutions, normalized and projected to the width of the transformer."""

    def __init__(self, config: SpeechConfig, device: Any, dtype: Any, *, has_norm: bool = True) -> None:
        super().__init__()
        channels, factory = config.conv_dim[-1], {"device": device, "dtype": dtype}
        self.layer_norm = LayerNorm(channels, config.layer_norm_eps, **factory) if has_norm else None
        self.projection = Linear(channels, config.hidden_size, **factory)
        self.dropout = Dropout(config.feat_proj_dropout)

    def forward(self, x_BTC: Tensor) -> tuple[Tensor, Tensor]:
        normal_BTC = x_BTC if self.layer_norm is None else self.layer_norm(x_BTC)
        return self.dropout(self.projection(normal_BTC)), normal_BTC


class PositionalConvolution(Module):
    """A convolution that tells each frame its place, from those around it."""

    def __init__(self, config: SpeechConfig, device: Any, dtype: Any) -> None:
        super().__init__()
        width, kernel = config.hidden_size, config.num_conv_pos_embeddings
        groups = config.num_conv_pos_embedding_groups
        conv = Conv1d(width, width, kernel, padding=kernel // 2, groups=groups, device=device, dtype=dtype)
        self.conv: Module = self.normalized(conv)
        self.activation = activation_named(config.feat_extract_activation)

    def normalized(self, conv: Conv1d) -> Module:
        """Return the convolution with weight norm."""
        return weight_norm(conv, dim=2)

    def forward(self, x_BTD: Tensor) -> Tensor:
        x_BDT = self.conv(x_BTD.mT)[..., : x_BTD.shape[1]]  # an even kernel makes one frame more
        return self.activation(x_BDT).mT


class SpeechAttention(Module):
    """Self-attention. `context` is the mask of keys (B, 1, 1, T), or None."""

    def __init__(self, config: SpeechConfig, device: Any, dtype: Any) -> None:
        super().__init__()
        self.num_heads, width = config.num_attention_heads, config.hidden_size
        for name in ("k_proj", "v_proj", "q_proj", "out_proj"):
            self.add_module(name, Linear(width, width, device=device, dtype=dtype))
        self.dropout_p = config.attention_dropout

    def forward(self, x_BTD: Tensor, context: Any = None) -> Tensor:
        return self.attend(x_BTD, context)

    def attend(self, x_BTD: Tensor, mask: Tensor | None) -> Tensor:
        """Return the mixed values (B, T, D).  Args: mask: of keys, or terms of the scores (B, H, T, T)"""
        projections = (self.q_proj, self.k_proj, self.v_proj)
        q_BHTK, k_BHTK, v_BHTK = (split_heads(project(x_BTD), self.num_heads) for project in projections)
        dropout = self.dropout_p if self.training else 0.0
        return self.out_proj(merge_heads(F.scaled_dot_product_attention(q_BHTK, k_BHTK, v_BHTK, mask, dropout)))


class FeedForward(Module):
    """Two linear maps with an activation between them."""

    def __init__(self, config: SpeechConfig, device: Any, dtype: Any) -> None:
        super().__init__()
        inner, width = config.intermediate_size, config.hidden_size
        self.intermediate_dropout = Dropout(config.activation_dropout)
        self.intermediate_dense = Linear(width, inner, device=device, dtype=dtype)
        self.activation = activation_named(config.hidden_act)
        self.output_dense = Linear(inner, width, device=device, dtype=dtype)
        self.output_dropout = Dropout(config.hidden_dropout)

    def forward(self, x_BTD: Tensor) -> Tensor:
        inner = self.intermediate_dropout(self.activation(self.intermediate_dense(x_BTD)))
        return self.output_dropout(self.output_dense(inner))


class AttentionAdapter(Module):
    """The part of a layer that is trained for one language.  Source: Pratap et al. 2023, arXiv:2305.13516"""

    def __init__(self, config: Any, device: Any, dtype: Any) -> None:
        super().__init__()
        width, inner, factory = config.hidden_size, config.adapter_attn_dim, {"device": device, "dtype": dtype}
        self.norm = LayerNorm(width, **factory)
        self.linear_1, self.linear_2 = Linear(width, inner, **factory), Linear(inner, width, **factory)

    def forward(self, x_BTD: Tensor) -> Tensor:
        return self.linear_2(F.relu(self.linear_1(self.norm(x_BTD))))


class SpeechLayer(Module):
    """Attention and a feed-forward part, each added to its input; then normalized, or its input is."""

    def __init__(self, config: Any, attention: Module, device: Any, dtype: Any) -> None:
        super().__init__()
        width, eps, factory = config.hidden_size, config.layer_norm_eps, {"device": device, "dtype": dtype}
        self.attention = attention
        self.dropout = Dropout(config.hidden_dropout)
        self.layer_norm = LayerNorm(width, eps, **factory)
        self.feed_forward = FeedForward(config, device, dtype)
        self.final_layer_norm = LayerNorm(width, eps, **factory)
        self.is_stable = config.do_stable_layer_norm
        has_adapter = self.is_stable and getattr(config, "adapter_attn_dim", None) is not None
        self.adapter_layer = AttentionAdapter(config, device, dtype) if has_adapter else None

    def forward(self, x_BTD: Tensor, context: Any = None) -> Tensor:
        if not self.is_stable:
            x_BTD = self.layer_norm(x_BTD + self.dropout(self.attention(x_BTD, context)))
            return self.final_layer_norm(x_BTD + self.feed_forward(x_BTD))
        x_BTD = x_BTD + self.dropout(self.attention(self.layer_norm(x_BTD), context))
        x_BTD = x_BTD + self.feed_forward(self.final_layer_norm(x_BTD))
        return x_BTD if self.adapter_layer is None else x_BTD + self.adapter_layer(x_BTD)


class SpeechEncoder(Module):
    """The transformer. Subclasses choose the parts that differ."""

    def __init__(self, config: SpeechConfig, device: Any, dtype: Any) -> None:
        super().__init__()
        self.pos_conv_embed = self.positions(config, device, dtype)
        self.layer_norm = LayerNorm(config.hidden_size, config.layer_norm_eps, device=device, dtype=dtype)
        self.dropout = Dropout(config.hidden_dropout)
        count = range(config.num_hidden_layers)
        attentions = [self.attention(config, index, device, dtype) for index in count]
        self.layers = ModuleList(SpeechLayer(config, attention, device, dtype) for attention in attentions)
        self.is_stable, self.layerdrop = config.do_stable_layer_norm, config.layerdrop

    def positions(self, config: Any, device: Any, dtype: Any) -> Module:
        """Return what adds the positions."""
        return PositionalConvolution(config, device, dtype)

    def attention(self, config: Any, index: int, device: Any, dtype: Any) -> Module:
        """Return the attention of a layer."""
        return SpeechAttention(config, device, dtype)

    def context(self, mask: Tensor | None, length: int) -> Any:
        """Return what each attention gets beside its input.  Args: mask: of keys (B, 1, 1, T)"""
        return mask

    def forward(self, x_BTD: Tensor, mask_BT: Tensor | None = None) -> Tensor:
        if mask_BT is not None:
            x_BTD = x_BTD.masked_fill(~mask_BT[..., None], 0.0)
        x_BTD = x_BTD + self.pos_conv_embed(x_BTD)
        if not self.is_stable:
            x_BTD = self.layer_norm(x_BTD)
        x_BTD = self.dropout(x_BTD)
        context = self.context(None if mask_BT is None else key_mask(mask_BT), x_BTD.shape[1])
        for layer in self.layers:
            if not (self.training and self.layerdrop and float(rand(())) < self.layerdrop):
                x_BTD = layer(x_BTD, context)
        return self.layer_norm(x_BTD) if self.is_stable else x_BTD


class SpeechPretrainedModel(PretrainedModel):
    """The base of models of waveforms with and without a head."""

    encoder_class: ClassVar[type[SpeechEncoder]] = SpeechEncoder
    config: Any

    @property
    def base(self) -> Any:
        """The model without a head."""
        return getattr(self, self.base_model_prefix, self)

    def freeze_feature_encoder(self) -> None:
        """Let the convolutions require no gradients, so that training leaves them."""
        self.base.feature_extractor.requires_grad_(False)

    def freeze_base_model(self) -> None:
        """Let all but the head require no gradients, so that training leaves it."""
        self.base.requires_grad_(False)

    def frame_mask(self, mask_BN: Tensor | None, frames: int) -> Tensor | None:
        """Return which frames are of the sound, (B, T), bool, by a mask of its samples (B, N), 0 for padding."""
        if mask_BN is None:
            return None
        samples = np.asarray(devices.to_host(mask_BN.array)).astype(np.int64).sum(-1)
        seen = np.arange(frames) < self.config.frames_of(samples)[:, None]
        return from_numpy(seen).to(mask_BN.device)

    def adapt(self, state: Mapping[str, Any]) -> dict[str, Any]:
        """As PretrainedModel; a file without the vector of hidden frames gets one, as wide as its norm is."""
        found = dict(state)
        for name in self.state_dict(keep_vars=True):
            norm = found.get(name.replace(MASKED, "encoder.layer_norm.weight"))
            if name.endswith(MASKED) and name not in found and norm is not None:
                found[name] = rand(tuple(norm.shape))
        return found

    def is_superfluous(self, name: str) -> bool:
        heads = ("lm_head.", "classifier.", "projector.", "tdnn.", "objective.", "layer_weights", "feature_extractor.")
        quantizer = ("quantizer.", "project_q.", "project_hid.", "label_embs_concat", "final_proj.")
        return name.startswith((*heads, *quantizer)) or name.endswith(MASKED)


class SpeechModel(SpeechPretrainedModel):
    """The encoder without a head.

    Args:
        config: the sizes.
        device, dtype: of the parameters; on device "meta" they take no memory, for `load_state_dict(assign=True)`.
    """

    def __init__(self, config: Any, device: Any = None, dtype: Any = None) -> None:
        super().__init__(config)
        self.feature_extractor = FeatureEncoder(config, device, dtype)
        self.feature_projection = self.projection(config, device, dtype)
        if config.mask_time_prob or config.mask_feature_prob:
            self.masked_spec_embed = empty_parameter(config.hidden_size, device=device, dtype=dtype)
            init.uniform_(self.masked_spec_embed)
        self.encoder = self.encoder_class(config, device, dtype)
        self.reset_parameters()

    def projection(self, config: Any, device: Any, dtype: Any) -> FeatureProjection:
        """Return the projection of frames."""
        return FeatureProjection(config, device, dtype)

    def forward(self, input_values: Tensor, attention_mask: Tensor | None = None) -> SpeechOutput:
        """Encode sounds.

        Args:    attention_mask: 0 for padding, which no frame then reads
        Shapes:  both (B, N)
        Raises:  ShapeError for other shapes, and for sounds that are too short for one frame
        """
        check_sound(self, input_values, attention_mask)
        features_BTC = self.feature_extractor(input_values.to(self.feature_extractor.conv_layers[0].conv.weight.dtype))
        mask_BT = self.frame_mask(attention_mask, features_BTC.shape[1])
        x_BTD, normal_BTC = self.feature_projection(features_BTC)
        if self.training and self.config.apply_spec_augment:
            x_BTD = self.hidden(x_BTD)
        return SpeechOutput(self.encoder(x_BTD, mask_BT), normal_BTC)

    def hidden(self, x_BTD: Tensor) -> Tensor:
        """Return frames with random spans hidden, and random spans of their features.

        Source:  Park et al. 2019, arXiv:1904.08779
        """
        config, (batch, length, width) = self.config, x_BTD.shape
        if config.mask_time_prob:
            sizes = (config.mask_time_prob, config.mask_time_length, config.mask_time_min_masks)
            spans_BT1 = random_spans(batch, length, *sizes).to(x_BTD.device)[..., None]
            x_BTD = x_BTD * ~spans_BT1 + self.masked_spec_embed * spans_BT1
        if config.mask_feature_prob:
            sizes = (config.mask_feature_prob, config.mask_feature_length, config.mask_feature_min_masks)
            x_BTD = x_BTD * ~random_spans(batch, width, *sizes).to(x_BTD.device)[:, None]
        return x_BTD


def random_spans(batch: int, length: int, share: float, span: int, least: int) -> Tensor:
    """Return which places random spans cover, (batch, length), bool: about the share of them."""
    count = max(int(share * length / span + float(rand(()))), least)
    count = min(count, length // span)
    starts = (rand((batch, count)) * (length - span + 1)).long()
    places = np.asarray(devices.to_host(starts.array))[..., None] + np.arange(span)
    found = np.zeros((batch, length), np.bool_)
    np.put_along_axis(found, places.reshape(batch, -1), True, axis=1)
    return from_numpy(found)


def check_sound(model: SpeechPretrainedModel, sound: Any, mask: Any) -> None:
    """Raise ShapeError for sounds that are not (B, N), a mask of another shape, and sounds shorter than one frame."""
    shape = tuple(sound.shape)
    name = type(model).__name__
    if len(shape) != 2:
        raise ShapeError(f"{name}: sounds of shape {shape}; expected (B, samples)", hint="mix channels to one")
    if mask is not None and tuple(mask.shape) != shape:
        raise ShapeError(
            f"{name}: attention_mask {tuple(mask.shape)} for sounds {shape}", hint="pass one for each sample"
        )
    if model.config.frames_of(shape[1]) < 1:
        raise ShapeError(f"{name}: a sound of {shape[1]} samples is shorter than one frame", hint="pad it with zeros")


def pooled(x_BTD: Tensor, mask_BT: Tensor | None) -> Tensor:
    """Return the mean (B, D) of the frames of each sound."""
    if mask_BT is None:
        return x_BTD.mean(1)
    seen_BT1 = mask_BT[..., None]
    return (x_BTD * seen_BT1).sum(1) / seen_BT1.sum(1).to(x_BTD.dtype)
