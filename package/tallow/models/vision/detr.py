"""DETR: an encoder and a decoder over the maps of a ResNet, in which each of a fixed number of queries finds an object
or none.

Loads Hugging Face folders of `DetrModel` and `DetrForObjectDetection`, with the names of a backbone in transformers or
in timm.

Letters: B batch, C channels, Y and X pixels or cells, T cells, Q queries, D width, L labels.

Source:  Carion et al. 2020, arXiv:2005.12872; names as in the checkpoints
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, ClassVar, NamedTuple

from tallow.core.apply import apply
from tallow.core.creation import arange, ones, zeros
from tallow.core.tensor import Tensor
from tallow.errors import CheckpointError
from tallow.models.activations import activation_named
from tallow.models.config import Config, labels_of, rename
from tallow.models.pretrained import PretrainedModel
from tallow.models.vision.resnet import ResNetConfig, ResNetStages, from_timm
from tallow.models.vision.stages import chosen, stage_name
from tallow.nn import functional as F
from tallow.nn.attention import merge_heads, split_heads
from tallow.nn.container import ModuleList
from tallow.nn.convolution import Conv2d
from tallow.nn.dropout import Dropout
from tallow.nn.embedding import Embedding
from tallow.nn.linear import Linear
from tallow.nn.module import Module
from tallow.nn.normalization import LayerNorm
from tallow.ops.joining import cat, stack

BACKBONE = "model.backbone.conv_encoder.model."
BACKBONES = (f"detr.{BACKBONE}", BACKBONE, BACKBONE.removeprefix("model."))  # by the head of the model
TEMPERATURE = 10000.0
ROWS = 50  # of a table of learned positions
ALL_STAGES = ("stage1", "stage2", "stage3", "stage4")  # which a backbone of timm returns


@dataclass(frozen=True, kw_only=True)
class DetrConfig(Config):
    """The sizes of a DETR, named as in Hugging Face's `config.json`, which `from_json` reads.

    Attributes:
        backbone_config: the sizes of the ResNet.
        num_queries: how many objects it finds at most.
        position_embedding_type: "sine" or "learned", of the cells of the map.
        auxiliary_loss: the norm follows each layer of the decoder, as in training with a loss of each.
        labels: names of the kinds of objects, in the order of the logits; `id2label` in the file.
    """

    backbone_config: ResNetConfig = field(default_factory=ResNetConfig)
    num_queries: int = 100
    d_model: int = 256
    encoder_layers: int = 6
    encoder_ffn_dim: int = 2048
    encoder_attention_heads: int = 8
    decoder_layers: int = 6
    decoder_ffn_dim: int = 2048
    decoder_attention_heads: int = 8
    activation_function: str = "relu"
    position_embedding_type: str = "sine"
    dropout: float = 0.1
    attention_dropout: float = 0.0
    activation_dropout: float = 0.0
    init_std: float = 0.02
    auxiliary_loss: bool = False
    labels: tuple[str, ...] = ("LABEL_0", "LABEL_1")

    model_types: ClassVar[tuple[str, ...]] = ("detr",)
    layer_counts: ClassVar[tuple[str, ...]] = ("encoder_layers", "decoder_layers")
    computed: ClassVar = {
        "is_encoder_decoder": (True,),
        "dilation": (False,),
        "scale_embedding": (False,),
        "backbone_kwargs": (None, {}),
    }
    # Of training, and sizes under other names.
    neutral: ClassVar = frozenset(
        {"bbox_cost", "bbox_loss_coefficient", "class_cost", "classifier_dropout"}
        | {"decoder_layerdrop", "dice_loss_coefficient", "encoder_layerdrop", "eos_coefficient", "giou_cost"}
        | {"giou_loss_coefficient", "init_xavier_std", "mask_loss_coefficient", "max_position_embeddings"}
        | {"backbone", "use_timm_backbone", "use_pretrained_backbone", "hidden_size", "num_attention_heads"}
        | {"num_channels", "num_hidden_layers"}
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        activation_named(self.activation_function)
        for name in ("encoder_attention_heads", "decoder_attention_heads"):
            self.check_heads("d_model", name)
        self.require("d_model", "a multiple of 4", lambda width: width % 4 == 0)
        self.require("position_embedding_type", "sine or learned", lambda kind: kind in ("sine", "learned"))

    @property
    def map_sizes(self) -> list[int]:
        """The channels of the maps of the backbone that are read."""
        eyes = self.backbone_config
        return list(chosen(eyes.out_features, (eyes.embedding_size, *eyes.hidden_sizes)))

    @property
    def initializer_range(self) -> float:
        """The standard deviation of fresh weights."""
        return self.init_std

    def check_layers(self, tensors: int, source: str) -> None:
        super().check_layers(tensors, source)
        self.backbone_config.check_layers(tensors, source)

    @classmethod
    def prepare(cls, entries: dict[str, Any]) -> None:
        labels_of(entries)
        rename(entries, {"hidden_size": "d_model"})
        own = entries.get("backbone_config")
        if isinstance(own, ResNetConfig):
            return
        entries["backbone_config"] = backbone_of(entries, own)

    def separated(self, state: Mapping[str, Any]) -> Mapping[str, Any]:
        found = {}
        for name, value in state.items():
            start = next((start for start in BACKBONES if name.startswith(start)), "")
            found[start + from_timm(name.removeprefix(start)) if start else name] = value
        return found


def backbone_of(entries: Mapping[str, Any], own: Any) -> ResNetConfig:
    """Return the sizes of a backbone that a config describes, or names as the package timm does.

    Raises:  CheckpointError for one that is no ResNet
    """
    if isinstance(own, dict) and own.get("model_type") == "resnet":
        return ResNetConfig.from_entries(own, "backbone_config")
    named = own if isinstance(own, dict) else entries
    if isinstance(own, dict) and own.get("model_type") != "timm_backbone":
        raise CheckpointError(f"a backbone of type {own.get('model_type')!r:.80}", hint="tallow has ResNets there")
    read = named.get("out_indices")
    stages = tuple(stage_name(place) for place in read or ()) if _are_places(read) else ALL_STAGES
    return ResNetConfig.of_timm(str(named.get("backbone") or "resnet50"), entries.get("num_channels") or 3, stages)


def _are_places(read: Any) -> bool:
    return isinstance(read, list | tuple) and len(read) > 0 and all(type(place) is int and place >= 0 for place in read)


class DetectionOutput(NamedTuple):
    """Output of a model of objects.

    Shapes:  logits (B, Q, L + 1), the last one for no object; pred_boxes (B, Q, 4): centre, width and height, as parts
             of the picture; last_hidden_state (B, Q, D); encoder_last_hidden_state (B, T, D)
    """

    logits: Tensor
    pred_boxes: Tensor
    last_hidden_state: Tensor
    encoder_last_hidden_state: Tensor


def sine_positions(mask_BYX: Tensor, width: int) -> Tensor:
    """Return sines and cosines of the rows and the columns of cells, counted inside of a mask.

    Shapes:  (B, Y, X) -> (B, T, 2 · width)
    """
    rows, columns = (mask_BYX.float().cumsum(axis) for axis in (1, 2))
    rows = rows / (rows[:, -1:, :] + 1e-6) * (2 * math.pi)
    columns = columns / (columns[:, :, -1:] + 1e-6) * (2 * math.pi)
    steps = arange(width, device=mask_BYX.device)
    periods = TEMPERATURE ** (2.0 * (steps // 2).float() / width)
    waves = []
    for each in (rows, columns):
        angles = each[..., None] / periods
        pair = apply(stack, (angles[..., 0::2].sin(), angles[..., 1::2].cos()), -1)
        waves.append(pair.flatten(3))
    return apply(cat, waves, -1).flatten(1, 2)


class LearnedPositions(Module):
    """Learned vectors of rows and of columns."""

    def __init__(self, width: int, device: Any, dtype: Any) -> None:
        super().__init__()
        self.row_embeddings = Embedding(ROWS, width, device=device, dtype=dtype)
        self.column_embeddings = Embedding(ROWS, width, device=device, dtype=dtype)

    def forward(self, mask_BYX: Tensor) -> Tensor:
        height, width = mask_BYX.shape[1:]
        rows, columns = self.row_embeddings.weight[:height], self.column_embeddings.weight[:width]
        parts = columns[None].expand(height, -1, -1), rows[:, None].expand(-1, width, -1)
        return apply(cat, parts, -1).flatten(0, 1)[None].expand(mask_BYX.shape[0], -1, -1)


class PlacedAttention(Module):
    """Multi-head attention whose queries and keys have positions added, and whose values have none."""

    def __init__(self, width: int, heads: int, dropout: float, device: Any, dtype: Any) -> None:
        super().__init__()
        self.heads, self.dropout_p = heads, dropout
        for name in ("k_proj", "v_proj", "q_proj", "out_proj"):
            setattr(self, name, Linear(width, width, device=device, dtype=dtype))

    def forward(self, queries: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None = None) -> Tensor:
        parts = self.q_proj(queries), self.k_proj(keys), self.v_proj(values)
        q_BHTK, k_BHTK, v_BHTK = (split_heads(each, self.heads) for each in parts)
        dropout = self.dropout_p if self.training else 0.0
        return self.out_proj(merge_heads(F.scaled_dot_product_attention(q_BHTK, k_BHTK, v_BHTK, mask, dropout)))


class DetrLayer(Module):
    """The part that a layer of the encoder and of the decoder have in common: self-attention and feed-forward."""

    def __init__(self, config: Any, heads: int, inner: int, device: Any, dtype: Any) -> None:
        super().__init__()
        width, factory = config.d_model, {"device": device, "dtype": dtype}
        self.self_attn = PlacedAttention(width, heads, config.attention_dropout, device, dtype)
        self.self_attn_layer_norm = LayerNorm(width, **factory)
        self.fc1 = Linear(width, inner, **factory)
        self.fc2 = Linear(inner, width, **factory)
        self.final_layer_norm = LayerNorm(width, **factory)
        self.activation = activation_named(config.activation_function)
        self.dropout, self.inner_dropout = Dropout(config.dropout), Dropout(config.activation_dropout)

    def attend(self, x_BTD: Tensor, places: Tensor, mask: Tensor | None) -> Tensor:
        """Return x after self-attention."""
        placed = x_BTD + places
        return self.self_attn_layer_norm(x_BTD + self.dropout(self.self_attn(placed, placed, x_BTD, mask)))

    def feed(self, x_BTD: Tensor) -> Tensor:
        """Return x after the feed-forward part."""
        inner = self.fc2(self.inner_dropout(self.activation(self.fc1(x_BTD))))
        return self.final_layer_norm(x_BTD + self.dropout(inner))


class DetrEncoderLayer(DetrLayer):
    """Self-attention of the cells of a map."""

    def forward(self, x_BTD: Tensor, places_BTD: Tensor, mask: Tensor | None) -> Tensor:
        return self.feed(self.attend(x_BTD, places_BTD, mask))


class DetrDecoderLayer(DetrLayer):
    """Self-attention of queries, and attention to the cells of a map."""

    def __init__(self, config: Any, heads: int, inner: int, device: Any, dtype: Any) -> None:
        super().__init__(config, heads, inner, device, dtype)
        self.encoder_attn = PlacedAttention(config.d_model, heads, config.attention_dropout, device, dtype)
        self.encoder_attn_layer_norm = LayerNorm(config.d_model, device=device, dtype=dtype)

    def forward(
        self, x_BQD: Tensor, queries_BQD: Tensor, cells_BTD: Tensor, places_BTD: Tensor, mask: Tensor | None
    ) -> Tensor:
        x_BQD = self.attend(x_BQD, queries_BQD, None)
        seen = self.encoder_attn(x_BQD + queries_BQD, cells_BTD + places_BTD, cells_BTD, mask)
        return self.feed(self.encoder_attn_layer_norm(x_BQD + self.dropout(seen)))


class DetrEncoder(Module):
    """The layers of the encoder."""

    def __init__(self, config: DetrConfig, device: Any, dtype: Any) -> None:
        super().__init__()
        sizes = config.encoder_attention_heads, config.encoder_ffn_dim
        self.layers = ModuleList(DetrEncoderLayer(config, *sizes, device, dtype) for _ in range(config.encoder_layers))

    def forward(self, x_BTD: Tensor, places_BTD: Tensor, mask: Tensor | None) -> Tensor:
        for layer in self.layers:
            x_BTD = layer(x_BTD, places_BTD, mask)
        return x_BTD


class DetrDecoder(Module):
    """The layers of the decoder, and a last norm."""

    def __init__(self, config: DetrConfig, device: Any, dtype: Any) -> None:
        super().__init__()
        sizes = config.decoder_attention_heads, config.decoder_ffn_dim
        self.layers = ModuleList(DetrDecoderLayer(config, *sizes, device, dtype) for _ in range(config.decoder_layers))
        self.layernorm = LayerNorm(config.d_model, device=device, dtype=dtype)
        self.normalizes_each = config.auxiliary_loss

    def forward(self, queries_BQD: Tensor, cells_BTD: Tensor, places_BTD: Tensor, mask: Tensor | None) -> Tensor:
        x_BQD = zeros(tuple(queries_BQD.shape), dtype=queries_BQD.dtype, device=queries_BQD.device)
        for layer in self.layers:
            x_BQD = layer(x_BQD, queries_BQD, cells_BTD, places_BTD, mask)
            if self.normalizes_each:
                x_BQD = self.layernorm(x_BQD)
        return self.layernorm(x_BQD)


class ConvEncoder(Module):
    """A backbone under the name that checkpoints give it."""

    def __init__(self, config: DetrConfig, device: Any, dtype: Any) -> None:
        super().__init__()
        self.model = ResNetStages(config.backbone_config, device, dtype)


class Backbone(Module):
    """A backbone under the name that checkpoints give it."""

    def __init__(self, config: DetrConfig, device: Any, dtype: Any) -> None:
        super().__init__()
        self.conv_encoder = ConvEncoder(config, device, dtype)


class DetrPretrainedModel(PretrainedModel):
    """The base of DETRs with and without heads."""

    config_class = DetrConfig
    base_model_prefix = "model"

    def is_superfluous(self, name: str) -> bool:
        heads = ("class_labels_classifier.", "bbox_predictor.", "mask_head.", "bbox_attention.")
        return name.startswith(heads) or name.endswith(".num_batches_tracked")

    def adapt(self, state: Mapping[str, Any]) -> dict[str, Any]:
        """As PretrainedModel; the parts of a model of masks have a prefix that others leave out."""
        return super().adapt({name.removeprefix("detr."): value for name, value in state.items()})


class DetrModel(DetrPretrainedModel):
    """The backbone, the encoder and the decoder.

    Args:
        config: the sizes.
        device, dtype: of the parameters; on device "meta" they take no memory, for `load_state_dict(assign=True)`.
    """

    def __init__(self, config: DetrConfig, device: Any = None, dtype: Any = None) -> None:
        super().__init__(config)
        width, factory = config.d_model, {"device": device, "dtype": dtype}
        self.backbone = Backbone(config, device, dtype)
        learned = config.position_embedding_type == "learned"
        self.position_embedding = LearnedPositions(width // 2, device, dtype) if learned else None
        self.query_position_embeddings = Embedding(config.num_queries, width, **factory)
        self.input_projection = Conv2d(config.map_sizes[-1], width, 1, **factory)
        self.encoder = DetrEncoder(config, device, dtype)
        self.decoder = DetrDecoder(config, device, dtype)
        self.reset_parameters()

    def forward(self, pixel_values: Tensor, pixel_mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Return the states of the queries (B, Q, D) and of the cells of the map (B, T, D).

        Args:    pixel_mask: 1 where a picture is, 0 where it was padded; None means no padding
        Shapes:  pixel_values (B, C, Y, X); pixel_mask (B, Y, X)
        Raises:  ShapeError
        """
        map_BCYX = self.backbone.conv_encoder.model(pixel_values)[-1]  # the last one that is read
        size = tuple(map_BCYX.shape[2:])
        mask = self.cell_mask(pixel_mask, size)
        if mask is None:
            mask_BYX = ones((pixel_values.shape[0], *size), device=pixel_values.device)
        else:
            mask_BYX = mask.reshape(-1, *size).float()
        cells_BTD = self.input_projection(map_BCYX).flatten(2).transpose(1, 2)
        places_BTD = (
            sine_positions(mask_BYX, self.config.d_model // 2).to(cells_BTD.dtype)
            if self.position_embedding is None
            else self.position_embedding(mask_BYX)
        )
        cells_BTD = self.encoder(cells_BTD, places_BTD, mask)
        queries_BQD = self.query_position_embeddings.weight[None].expand(pixel_values.shape[0], -1, -1)
        return self.decoder(queries_BQD, cells_BTD, places_BTD, mask), cells_BTD

    @staticmethod
    def cell_mask(pixel_mask: Tensor | None, size: tuple[int, int]) -> Tensor | None:
        """Return which cells of a map of this size are no padding, (B, 1, 1, T); None if all are."""
        if pixel_mask is None:
            return None
        return (F.interpolate(pixel_mask[None].float(), size=size)[0] != 0).flatten(1)[:, None, None]


class BoxHead(Module):
    """Three linear layers with ReLU between them."""

    def __init__(self, width: int, device: Any, dtype: Any, layers: int = 3) -> None:
        super().__init__()
        sizes = [width] * layers + [4]
        self.layers = ModuleList(Linear(before, after, device=device, dtype=dtype) for before, after in pairwise(sizes))

    def forward(self, x_BQD: Tensor) -> Tensor:
        *inner, last = self.layers
        for layer in inner:
            x_BQD = F.relu(layer(x_BQD))
        return last(x_BQD)


class DetrForObjectDetection(DetrPretrainedModel):
    """Finds objects: a label, or none, and a box for each query.

    Args:    as DetrModel
    """

    def __init__(self, config: DetrConfig, device: Any = None, dtype: Any = None) -> None:
        super().__init__(config)
        self.model = DetrModel(config, device, dtype)
        self.class_labels_classifier = Linear(config.d_model, len(config.labels) + 1, device=device, dtype=dtype)
        self.bbox_predictor = BoxHead(config.d_model, device, dtype)
        self.reset_parameters()

    def forward(self, pixel_values: Tensor, pixel_mask: Tensor | None = None) -> DetectionOutput:
        """Return labels and boxes.  Args, shapes, raises: as `DetrModel.forward`"""
        states_BQD, cells_BTD = self.model(pixel_values, pixel_mask)
        boxes = self.bbox_predictor(states_BQD).sigmoid()
        return DetectionOutput(self.class_labels_classifier(states_BQD), boxes, states_BQD, cells_BTD)
