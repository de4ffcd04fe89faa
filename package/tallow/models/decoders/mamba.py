"""Mamba: layers with a short convolution and a selective scan instead of attention.

Loads Hugging Face folders of `MambaForCausalLM` and `MambaModel`.

Letters: B batch, T positions, D width, C channels, N elements of a channel's state.

Source:  Gu & Dao 2023, arXiv:2312.00752; names as in transformers' `modeling_mamba.py`
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

from tallow.core.creation import arange
from tallow.core.tensor import Tensor
from tallow.models.activations import activation_named
from tallow.models.causal_lm import CacheShape, CausalLM
from tallow.models.decoders.decoder import DecoderConfig, DecoderModel
from tallow.nn import functional as F
from tallow.nn import init
from tallow.nn.cache import KVCache
from tallow.nn.container import ModuleList
from tallow.nn.embedding import Embedding
from tallow.nn.linear import Linear
from tallow.nn.module import Module
from tallow.nn.normalization import RMSNorm
from tallow.nn.parameter import empty_parameter
from tallow.nn.selective_scan import selective_scan
from tallow.nn.short_convolution import ShortConvolution
from tallow.nn.state_memory import States
from tallow.tape.modes import no_grad

LONGEST = 2**20  # positions; states limit no text, and memory does not depend on its length
STATE = "recurrent"  # the name of the scan's state in a cache


@dataclass(frozen=True, kw_only=True)
class StateSpaceConfig(DecoderConfig):
    """The sizes of a Mamba of either version, as DecoderConfig.

    Attributes:
        state_size: N.
        expand: C / hidden_size.
        conv_kernel: the width of the convolution.
        use_bias: whether the projections have biases.
        use_conv_bias: whether the convolution has a bias.
    """

    vocab_size: int
    hidden_size: int
    num_hidden_layers: int
    state_size: int = 16
    expand: float = 2.0
    conv_kernel: int = 4
    use_bias: bool = False
    use_conv_bias: bool = True
    hidden_act: str = "silu"
    layer_norm_epsilon: float = 1e-5
    bos_token_id: int = 0
    eos_token_id: tuple[int, ...] = (0,)
    pad_token_id: int | None = 0

    # The first weights; how transformers computes; and that sums of layers are float32 in half precision.
    neutral: ClassVar[frozenset[str]] = frozenset(
        {f"time_step_{name}" for name in ("scale", "min", "max", "init_scheme", "floor")}
        | {"rescale_prenorm_residual", "use_mambapy", "use_associative_scan", "residual_in_fp32", "chunk_size"}
    )
    unread: ClassVar[frozenset[str]] = frozenset({"layer_types"})

    def __post_init__(self) -> None:
        super().__post_init__()
        activation_named(self.hidden_act)
        self.require("expand", "a positive number", lambda value: value > 0)

    @property
    def channels(self) -> int:
        """C"""
        return int(self.expand * self.hidden_size)


@dataclass(frozen=True, kw_only=True)
class MambaConfig(StateSpaceConfig):
    """The sizes of a Mamba, as StateSpaceConfig.

    Attributes:
        time_step_rank: the number of features from which the sizes of steps are computed.
        intermediate_size: C; None means expand * hidden_size.
    """

    time_step_rank: int = 48
    intermediate_size: int | None = None
    tie_word_embeddings: bool = True

    model_types: ClassVar[tuple[str, ...]] = ("mamba",)

    @classmethod
    def prepare(cls, entries: dict[str, Any]) -> None:
        super().prepare(entries)
        width = entries.get("hidden_size")
        if entries.get("time_step_rank", "auto") == "auto" and type(width) is int:
            entries["time_step_rank"] = math.ceil(width / 16)

    @property
    def channels(self) -> int:
        return super().channels if self.intermediate_size is None else self.intermediate_size

    @property
    def layer_shapes(self) -> tuple[States, ...]:
        past = self.conv_kernel - 1, self.channels
        shapes = {ShortConvolution.state: past, STATE: (self.channels, self.state_size)}
        return (States(shapes),) * self.num_hidden_layers


class MambaMixer(Module):
    """out(scan(convolution(x)) ⊙ activation(gate)), where x and the gate are projections of the input."""

    def __init__(self, config: Any, layer: int, device: Any, dtype: Any) -> None:
        super().__init__()
        self.layer = layer
        channels, self.rank, self.size = config.channels, config.time_step_rank, config.state_size
        self.activation = activation_named(config.hidden_act)
        self.conv1d = ShortConvolution(channels, config.conv_kernel, config.use_conv_bias, device, dtype)
        self.in_proj = Linear(config.hidden_size, 2 * channels, config.use_bias, device, dtype)
        self.x_proj = Linear(channels, self.rank + 2 * self.size, False, device, dtype)
        self.dt_proj = Linear(self.rank, channels, True, device, dtype)
        self.A_log = empty_parameter(channels, self.size, device=device, dtype=dtype)
        self.D = empty_parameter(channels, device=device, dtype=dtype)
        self.out_proj = Linear(channels, config.hidden_size, config.use_bias, device, dtype)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set the rates of decay to 1, 2, ..., N, and D to 1."""
        init.ones_(self.D)
        if self.A_log.device.type != "meta":
            with no_grad():
                self.A_log.copy_(arange(1, self.size + 1, device=self.A_log.device).log())

    def forward(self, x_BTD: Tensor, cache: KVCache | None) -> Tensor:
        x_BTC, gate_BTC = self.in_proj(x_BTD).chunk(2, -1)
        mask_BT1 = None if cache is None else cache.text_mask(x_BTD.shape[1])
        x_BTC = masked(self.activation(self.conv1d(masked(x_BTC, mask_BT1), cache, self.layer)), mask_BT1)
        step_BTR, b_BTN, c_BTN = self.selections(x_BTC)
        step_BTC = F.softplus(widened(self.dt_proj(step_BTR)))
        states = None if cache is None else cache.states(self.layer)
        wide_BTC = widened(x_BTC)
        state_BCN = wide_BTC.new_zeros(len(x_BTC), *self.A_log.shape) if states is None else states[STATE]
        y_BTC, state_BCN = selective_scan(
            wide_BTC, step_BTC, -widened(self.A_log).exp(), widened(b_BTN), widened(c_BTN), state_BCN
        )
        if cache is not None:
            cache.store(self.layer, **{STATE: state_BCN})
        y_BTC = (y_BTC + wide_BTC * widened(self.D)).to(x_BTC.dtype)
        return self.out_proj(y_BTC * self.activation(gate_BTC))

    def selections(self, x_BTC: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return what steps, writes and reads of the states come from: (B, T, R), (B, T, N), (B, T, N)."""
        step_BTR, b_BTN, c_BTN = self.x_proj(x_BTC).split([self.rank, self.size, self.size], -1)
        return step_BTR, b_BTN, c_BTN


def masked(x_BTC: Tensor, mask_BT1: Tensor | None) -> Tensor:
    """Return zeros at padding, which leave states as they are."""
    return x_BTC if mask_BT1 is None else x_BTC * mask_BT1.to(x_BTC.dtype)


def widened(x: Tensor) -> Tensor:
    """Return halves as float32, in which scans compute."""
    return x if x.dtype.itemsize >= 4 else x.float()


class MambaBlock(Module):
    """A mixer after a norm, added to its input."""

    mixer_class: ClassVar[Any] = MambaMixer

    def __init__(self, config: Any, layer: int, device: Any, dtype: Any) -> None:
        super().__init__()
        self.norm = RMSNorm(config.hidden_size, config.layer_norm_epsilon, device=device, dtype=dtype)
        self.mixer = self.mixer_class(config, layer, device, dtype)

    def forward(self, x_BTD: Tensor, cache: KVCache | None) -> Tensor:
        return x_BTD + self.mixer(self.norm(x_BTD), cache)


class MambaModel(DecoderModel):
    """The layers without a head: hidden states (B, T, D) of tokens (B, T).  Args: as DecoderModel"""

    config_class: ClassVar[type[StateSpaceConfig]] = MambaConfig
    base_model_prefix = "backbone"
    block_class: ClassVar[type[MambaBlock]] = MambaBlock

    def __init__(self, config: Any, device: Any = None, dtype: Any = None) -> None:
        super().__init__(config)
        self.embeddings = Embedding(config.vocab_size, config.hidden_size, device=device, dtype=dtype)
        self.layers = ModuleList(self.block_class(config, i, device, dtype) for i in range(config.num_hidden_layers))
        self.norm_f = RMSNorm(config.hidden_size, config.layer_norm_epsilon, device=device, dtype=dtype)
        self.reset_parameters()

    @property
    def token_embedding(self) -> Embedding:
        return self.embeddings

    @property
    def context_length(self) -> int:
        return LONGEST

    def decode(self, tokens_BT: Tensor, cache: KVCache | None) -> Tensor:
        x_BTD = self.embeddings(tokens_BT)
        for layer in self.layers:
            x_BTD = layer(x_BTD, cache)
        if cache is not None:
            cache.advance(tokens_BT.shape[1])
        return self.norm_f(x_BTD)


class Mamba(CausalLM):
    """A language model; Hugging Face's `MambaForCausalLM`.

    Args:    as DecoderModel
    """

    model_class: ClassVar[type[MambaModel]] = MambaModel

    @property
    def cache_shape(self) -> CacheShape:
        return CacheShape(self.config.num_hidden_layers, 0, 0)
