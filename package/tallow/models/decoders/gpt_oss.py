"""gpt-oss: experts with biases and a bounded gate, a sink for each head of attention, and a sliding window in every
other layer.

Loads Hugging Face folders of `GptOssForCausalLM`, `GptOssModel`, and the heads for texts and tokens, with experts in
floats or in MXFP4, which stay in four bits.

Letters: D width, H query heads, E experts, F feed-forward width.

Source:  OpenAI 2025, arXiv:2508.10925; Xiao et al. 2023, arXiv:2309.17453, for the sinks; names as in transformers'
         `modeling_gpt_oss.py`
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from tallow import devices, dtypes
from tallow.core.apply import apply
from tallow.core.tensor import Tensor
from tallow.dtypes import Array
from tallow.errors import CheckpointError
from tallow.kernels.quantized.block_matrix import BlockMatrix
from tallow.models.decoders.experts import ExpertsConfig, Router, SparseDecoderLayer, SparseLlama, SparseMLP
from tallow.models.decoders.layer_types import LayerTypesConfig
from tallow.models.decoders.llama import LlamaAttention, LlamaConfig, LlamaMLP, LlamaModel
from tallow.nn import functional as F
from tallow.nn import init
from tallow.nn.parameter import empty_parameter
from tallow.nn.rope_scaling import ORIGINAL
from tallow.ops.joining import stack

# Of a config without rotary settings, which transformers' class has.
ROPE = {
    "rope_type": "yarn",
    "rope_theta": 150_000.0,
    "factor": 32.0,
    "beta_fast": 32.0,
    "beta_slow": 1.0,
    "truncate": False,
    ORIGINAL: 4096,
}
BLOCKS, SCALES = "_blocks", "_scales"  # ends of the names of experts in MXFP4


@dataclass(frozen=True, kw_only=True)
class GptOssConfig(LayerTypesConfig, ExpertsConfig):
    """The sizes of a gpt-oss, as LayerTypesConfig and ExpertsConfig. Without layer_types every other layer, from the
    first on, has the sliding window.

    Attributes:
        swiglu_alpha: α of the gate g · sigmoid(α g).
        swiglu_limit: the bound of gates from above, and of the other factors from both sides.
    """

    num_key_value_heads: int = 8
    head_dim: int | None = 64
    max_position_embeddings: int = 131072
    rms_norm_eps: float = 1e-5
    rope_theta: float = 150_000.0
    attention_bias: bool = True
    num_experts: int = 128
    num_experts_per_tok: int = 4
    norm_topk_prob: bool = True
    swiglu_alpha: float = 1.702
    swiglu_limit: float = 7.0
    eos_token_id: tuple[int, ...] = ()

    model_types: ClassVar[tuple[str, ...]] = ("gpt_oss",)
    always_causal: ClassVar[bool] = True
    unread: ClassVar[frozenset[str]] = frozenset({"mlp_bias", "norm_topk_prob"})
    # Older names of entries that files have twice.
    neutral: ClassVar[frozenset[str]] = ExpertsConfig.neutral | {"experts_per_token", "initial_context_length"}
    computed: ClassVar[Mapping[str, tuple[Any, ...]]] = {**LlamaConfig.computed, **ExpertsConfig.computed}

    @classmethod
    def prepare(cls, entries: dict[str, Any]) -> None:
        if entries.get("rope_parameters") is None and entries.get("rope_scaling") is None:
            entries["rope_parameters"] = {**ROPE}
        super().prepare(entries)
        entries.setdefault("sliding_window", 128)  # null means no window, a missing entry 128
        quantization = entries.get("quantization_config")
        if isinstance(quantization, dict) and quantization.get("quant_method") == "mxfp4":
            del entries["quantization_config"]  # the names of the tensors show it

    @property
    def feed_forward_bias(self) -> bool:
        return True

    def slides(self, layer: int) -> bool:
        return layer % 2 == 0

    def separated(self, state: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return a state dict with matrices for each expert; in a checkpoint those of all experts are one tensor.

        Shapes:  gate_up_proj (E, D, 2F), whose columns alternate, down_proj (E, F, D), and their biases (E, 2F) and
                 (E, D); or in MXFP4 blocks (E, 2F or D, groups, 16) and scales (E, 2F or D, groups)
        """
        parts: dict[str, Any] = {}
        for name, tensor in state.items():
            path, _, kind = name.rpartition(".")
            if not path.endswith(".mlp.experts"):
                parts[name.replace(".mlp.router.", ".mlp.gate.")] = tensor
                continue
            if kind.endswith(SCALES):
                continue
            matrix, is_bias = kind.removesuffix("_bias").removesuffix(BLOCKS), kind.endswith("_bias")
            if kind.endswith(BLOCKS):
                scales = state.get(f"{path}.{matrix}{SCALES}")
                if scales is None or scales.shape != tensor.shape[:-1] or tensor.ndim != 4 or tensor.shape[-1] != 16:
                    raise CheckpointError(f"{name} has no scales of its shape", hint="download the checkpoint again")
                if {tensor.dtype, scales.dtype} != {dtypes.uint8}:
                    kinds = f"{tensor.dtype} and {scales.dtype}"
                    raise CheckpointError(f"{name} and its scales are {kinds}, not uint8", hint="use the original file")
                each: Any = (_blocks(*pair) for pair in zip(tensor.unbind(0), scales.unbind(0), strict=True))
            else:
                each = (rows if is_bias else rows.T for rows in tensor.unbind(0))
            for i, rows in enumerate(each):
                for part, own in _parts(matrix, rows):
                    parts[f"{path}.{i}.{part}.{'bias' if is_bias else 'weight'}"] = own
        return parts

    def joined(self, state: Mapping[str, Any]) -> dict[str, Any]:
        """Return a state dict with one tensor for all experts of a layer, as `separated` takes it."""
        rest = {name.replace(".mlp.gate.", ".mlp.router."): tensor for name, tensor in state.items()}
        for first in [name for name in rest if name.endswith(".experts.0.gate_proj.weight")]:
            path = first.removesuffix(".0.gate_proj.weight")
            for kind, end in (("weight", ""), ("bias", "_bias")):
                of_each = [
                    [rest.pop(f"{path}.{i}.{part}.{kind}") for i in range(self.num_experts)]
                    for part in ("gate_proj", "up_proj", "down_proj")
                ]
                both = [apply(stack, list(pair), 1).flatten(0, 1) for pair in zip(*of_each[:2], strict=True)]
                for name, tensors in (("gate_up_proj", both), ("down_proj", of_each[2])):
                    all_experts = apply(stack, tensors)
                    rest[f"{path}.{name}{end}"] = all_experts if end else all_experts.mT
        return rest


def _parts(matrix: str, rows: Any) -> Iterator[tuple[str, Any]]:
    """Yield the names of an expert's layers with their rows, from those of a matrix in a checkpoint."""
    if matrix == "down_proj":
        yield matrix, rows
        return
    for start, name in enumerate(("gate_proj", "up_proj")):
        if isinstance(rows, BlockMatrix):
            yield name, BlockMatrix(np.ascontiguousarray(rows.blocks[start::2]), rows.format)
        else:
            yield name, rows[start::2]


def _blocks(nibbles: Tensor, scales: Tensor) -> BlockMatrix:
    """Return a matrix in the blocks of GGUF files: the scale, then codes i and i + 16 in one byte.

    In a checkpoint a byte has two neighbours.

    Shapes:  nibbles (N, groups, 16), scales (N, groups), both uint8
    """
    pairs: Array = devices.to_host(nibbles.array)
    codes = np.stack([pairs & 15, pairs >> 4], -1).reshape(*pairs.shape[:2], 32)
    blocks = np.empty((*pairs.shape[:2], 17), np.uint8)
    blocks[..., 0] = devices.to_host(scales.array)
    blocks[..., 1:] = codes[..., :16] | codes[..., 16:] << 4
    return BlockMatrix(blocks.reshape(len(blocks), -1), "MXFP4")


class GptOssAttention(LlamaAttention):
    """Llama's attention with a sink for each head."""

    def __init__(self, config: GptOssConfig, layer: int, device: Any, dtype: Any) -> None:
        super().__init__(config, layer, device, dtype)
        self.sinks = empty_parameter(self.num_heads, device=device, dtype=dtype)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set the sinks to 0."""
        assert self.sinks is not None
        init.zeros_(self.sinks)


class GptOssExpert(LlamaMLP):
    """down((up(x) + 1) ⊙ g · sigmoid(α g)), with g = gate(x) and both factors bounded."""

    def __init__(self, config: GptOssConfig, *args: Any) -> None:
        super().__init__(config, *args)
        self.alpha, self.limit = config.swiglu_alpha, config.swiglu_limit

    def forward(self, x_BTD: Tensor) -> Tensor:
        gate = self.gate_proj(x_BTD).clamp(max=self.limit)
        up = self.up_proj(x_BTD).clamp(-self.limit, self.limit)
        return self.down_proj((up + 1) * (gate * F.sigmoid(gate * self.alpha)))


class GptOssRouter(Router):
    """A router with a bias."""

    def __init__(self, config: GptOssConfig, device: Any, dtype: Any) -> None:
        super().__init__(config, device, dtype)
        self.bias = empty_parameter(config.num_experts, device=device, dtype=dtype)
        self.reset_parameters()


class GptOssMLP(SparseMLP):
    """The weighted sum of the outputs of the experts that the router chooses for each token."""

    router_class = GptOssRouter
    expert_class = GptOssExpert


class GptOssDecoderLayer(SparseDecoderLayer):
    """A Llama layer with gpt-oss's attention and experts."""

    attention_class = GptOssAttention
    sparse_class = GptOssMLP


class GptOssModel(LlamaModel):
    """The transformer without a head: hidden states (B, T, D) of tokens (B, T).  Args: as DecoderModel"""

    config_class = GptOssConfig
    layer_class = GptOssDecoderLayer


class GptOss(SparseLlama):
    """A language model; Hugging Face's `GptOssForCausalLM`.

    Args:    as DecoderModel
    """

    model_class = GptOssModel
