"""The sizes that wav2vec2, HuBERT and WavLM have in common."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from tallow.models.activations import activation_named
from tallow.models.config import Config, Count, labels_of, tupled

LISTS = ("conv_dim", "conv_stride", "conv_kernel", "tdnn_dim", "tdnn_kernel", "tdnn_dilation")
# Names of the parts of a weight with weight norm, in files of PyTorch before 2.0 and after.
WEIGHT_NORM = {".conv.weight_g": "original0", ".conv.weight_v": "original1"}
OF_TRAINING = frozenset(  # of the task that the encoders are trained by, and of losses
    {
        *("num_codevectors_per_group", "num_codevector_groups", "contrastive_logits_temperature", "num_negatives"),
        *("codevector_dim", "proj_codevector_dim", "diversity_loss_weight", "feat_quantizer_dropout"),
        *("ctc_loss_reduction", "ctc_zero_infinity", "num_feat_extract_layers", "output_hidden_size"),
        *("adapter_kernel_size", "adapter_stride", "num_adapter_layers", "num_ctc_classes", "feat_extract_dropout"),
        *("mask_channel_length", "mask_channel_min_space", "mask_channel_other", "mask_channel_prob"),
        *("mask_channel_selection", "mask_time_min_space", "mask_time_other", "mask_time_selection"),
        *("no_mask_channel_overlap", "no_mask_time_overlap", "tokenizer_class", "gradient_checkpointing"),
    }
)


@dataclass(frozen=True, kw_only=True)
class SpeechConfig(Config):
    """The sizes of an encoder of waveforms, named as in Hugging Face's `config.json`, which `from_json` reads.

    Attributes:
        feat_extract_norm: "group" normalizes after the first convolution, "layer" after each.
        conv_dim, conv_kernel, conv_stride: the channels, kernels and steps of the convolutions.
        num_conv_pos_embeddings, num_conv_pos_embedding_groups: the kernel and groups of the positions' convolution.
        do_stable_layer_norm: normalize the input of each part of a layer, not its sum with the output.
        apply_spec_augment, mask_time_prob, mask_time_length, mask_time_min_masks, mask_feature_prob,
            mask_feature_length, mask_feature_min_masks: what is hidden in training.
        layerdrop: the probability that training leaves out a layer.
        use_weighted_layer_sum: classifiers read a weighted sum of all hidden states.
        classifier_proj_size: the width before the labels of a sound.
        tdnn_dim, tdnn_kernel, tdnn_dilation, xvector_output_dim: the sizes of the head for speakers.
        labels: the names of a classifier's labels, in the order of its logits; from `id2label`.
    """

    vocab_size: int = 32
    hidden_size: int = 768
    num_hidden_layers: int = 12
    num_attention_heads: int = 12
    intermediate_size: int = 3072
    hidden_act: str = "gelu"
    hidden_dropout: float = 0.1
    activation_dropout: float = 0.1
    attention_dropout: float = 0.1
    feat_proj_dropout: float = 0.0
    final_dropout: float = 0.1
    layerdrop: float = 0.1
    initializer_range: float = 0.02
    layer_norm_eps: float = 1e-5
    feat_extract_norm: str = "group"
    feat_extract_activation: str = "gelu"
    conv_dim: tuple[int, ...] = (512, 512, 512, 512, 512, 512, 512)
    conv_stride: tuple[int, ...] = (5, 2, 2, 2, 2, 2, 2)
    conv_kernel: tuple[int, ...] = (10, 3, 3, 3, 3, 2, 2)
    conv_bias: bool = False
    num_conv_pos_embeddings: int = 128
    num_conv_pos_embedding_groups: int = 16
    do_stable_layer_norm: bool = False
    apply_spec_augment: bool = True
    mask_time_prob: float = 0.05
    mask_time_length: int = 10
    mask_time_min_masks: Count = 2
    mask_feature_prob: float = 0.0
    mask_feature_length: int = 10
    mask_feature_min_masks: Count = 0
    use_weighted_layer_sum: bool = False
    classifier_proj_size: int = 256
    tdnn_dim: tuple[int, ...] = (512, 512, 512, 512, 1500)
    tdnn_kernel: tuple[int, ...] = (5, 3, 3, 1, 1)
    tdnn_dilation: tuple[int, ...] = (1, 2, 3, 1, 1)
    xvector_output_dim: int = 512
    pad_token_id: int = 0
    labels: tuple[str, ...] = ("LABEL_0", "LABEL_1")

    neutral: ClassVar = OF_TRAINING
    computed: ClassVar[Mapping[str, tuple[Any, ...]]] = {"add_adapter": (False,)}

    def __post_init__(self) -> None:
        super().__post_init__()
        activation_named(self.hidden_act)
        activation_named(self.feat_extract_activation)
        self.require("feat_extract_norm", "'group' or 'layer'", lambda norm: norm in ("group", "layer"))
        self.require("conv_dim", "at least one convolution", lambda sizes: len(sizes) > 0)
        for name in LISTS:
            self.require(name, "positive integers", lambda sizes: all(0 < size < 1 << 20 for size in sizes))
        for names in (LISTS[:3], LISTS[3:]):
            first = names[0]
            for name in names[1:]:
                self.require(name, f"as many numbers as {first}", self._has_length(first))
        self.check_heads("hidden_size", "num_attention_heads", "num_conv_pos_embedding_groups")

    def _has_length(self, other: str) -> Any:
        return lambda sizes: len(sizes) == len(getattr(self, other))

    @classmethod
    def prepare(cls, entries: dict[str, Any]) -> None:
        labels_of(entries)
        tupled(entries, *LISTS)

    def separated(self, state: Mapping[str, Any]) -> Mapping[str, Any]:
        """As Config; weights with weight norm have the names of `parametrizations.weight_norm`."""
        found = {}
        for name, tensor in state.items():
            for old, new in WEIGHT_NORM.items():
                if name.endswith(old):
                    name = f"{name.removesuffix(old)}.conv.parametrizations.weight.{new}"
            found[name] = tensor
        return found

    @property
    def inputs_to_logits_ratio(self) -> int:
        """The samples of the sound for each frame of the output."""
        return math.prod(self.conv_stride)

    @property
    def samples_of_frame(self) -> int:
        """The samples that one frame of the output reads."""
        samples = 1
        for kernel, step in zip(self.conv_kernel[::-1], self.conv_stride[::-1], strict=True):
            samples = (samples - 1) * step + kernel
        return samples

    def frames_of(self, samples: Any) -> Any:
        """Return the number of frames for a number of samples, or for an array of them."""
        for kernel, step in zip(self.conv_kernel, self.conv_stride, strict=True):
            samples = (samples - kernel) // step + 1
        return samples
