"""Mamba-2: Mamba with one rate of decay for each head, so that prompts are computed by products of matrices.

Loads Hugging Face folders of `Mamba2ForCausalLM` and `Mamba2Model`.

Letters: B batch, T positions, D width, C channels, H heads, P channels of a head, G groups, N elements of a state.

Source:  Dao & Gu 2024, arXiv:2405.21060; names as in transformers' `modeling_mamba2.py`
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

from tallow.core.creation import arange
from tallow.core.tensor import Tensor
from tallow.errors import ArgumentError
from tallow.models.activations import activation_named
from tallow.models.config import MAX_SIZE
from tallow.models.decoders.mamba import STATE, Mamba, MambaBlock, MambaModel, StateSpaceConfig, masked, widened
from tallow.nn import functional as F
from tallow.nn import init
from tallow.nn.attention import merge_heads, split_heads
from tallow.nn.cache import KVCache
from tallow.nn.decayed_attention import decayed_attention
from tallow.nn.linear import Linear
from tallow.nn.module import Module
from tallow.nn.normalization import RMSNorm
from tallow.nn.parameter import empty_parameter
from tallow.nn.short_convolution import ShortConvolution
from tallow.nn.state_memory import States
from tallow.tape.modes import no_grad


@dataclass(frozen=True, kw_only=True)
class Mamba2Config(StateSpaceConfig):
    """The sizes of a Mamba-2, as StateSpaceConfig.

    Attributes:
        num_heads: H.
        head_dim: P.
        n_groups: G; the heads of a group share what reads and writes their states.
        time_step_limit: the smallest and the largest size of a step.
    """

    state_size: int = 128
    num_heads: int = 128
    head_dim: int = 64
    n_groups: int = 8
    time_step_limit: tuple[float, float] = (0.0, math.inf)
    eos_token_id: tuple[int, ...] = (2,)
    pad_token_id: int | None = 1

    model_types: ClassVar[tuple[str, ...]] = ("mamba2",)
    neutral: ClassVar[frozenset[str]] = StateSpaceConfig.neutral | {"time_step_rank", "intermediate_size"}

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.num_heads * self.head_dim != self.channels or self.num_heads % self.n_groups:
            raise ArgumentError(
                f"Mamba2Config: num_heads={self.num_heads} of head_dim={self.head_dim} in n_groups={self.n_groups} do "
                f"not make {self.channels} channels, expand * hidden_size"
            )
        self.require("time_step_limit", "two numbers, the smaller one first", is_range)

    @classmethod
    def prepare(cls, entries: dict[str, Any]) -> None:
        super().prepare(entries)
        step_limit(entries)

    @property
    def mixed(self) -> int:
        """The number of channels of the convolution."""
        return self.channels + 2 * self.n_groups * self.state_size

    @property
    def layer_shapes(self) -> tuple[States, ...]:
        past = self.conv_kernel - 1, self.mixed
        shapes = {ShortConvolution.state: past, STATE: (self.num_heads, self.state_size, self.head_dim)}
        return (States(shapes),) * self.num_hidden_layers


def step_limit(entries: dict[str, Any]) -> None:
    """Convert `time_step_limit` to a tuple of floats, in place."""
    if isinstance(entries.get("time_step_limit"), list):
        entries["time_step_limit"] = tuple(map(_number, entries["time_step_limit"]))


def _number(entry: Any) -> Any:
    """Return a number as a float, and another entry as it is. transformers writes infinity as a mapping."""
    if entry == {"__float__": "Infinity"}:
        return math.inf
    return float(entry) if type(entry) is int and abs(entry) <= MAX_SIZE else entry


def is_range(pair: Any) -> bool:
    """Return whether a value is a tuple of two floats, the smaller one first."""
    return isinstance(pair, tuple) and len(pair) == 2 and all(type(x) is float for x in pair) and pair[0] <= pair[1]


class GroupedRMSNorm(RMSNorm):
    """RMSNorm(x ⊙ silu(gate)) of each group of channels."""

    def __init__(self, channels: int, groups: int, eps: float, device: Any, dtype: Any) -> None:
        super().__init__(channels, eps, device=device, dtype=dtype)
        self.groups = groups

    def forward(self, input: Tensor, gate: Tensor) -> Tensor:  # type: ignore[override]
        return self.normed(input * F.silu(gate))

    def normed(self, x: Tensor) -> Tensor:
        """Return the norm of each group."""
        parts = x.unflatten(-1, (self.groups, -1))
        assert self.weight is not None
        return F.rms_norm(parts, (parts.shape[-1],), None, self.eps).flatten(-2) * self.weight


class Mamba2Mixer(Module):
    """out(norm(attention with decays, gate)) over a short convolution; states, queries and keys have N elements."""

    def __init__(self, config: Any, layer: int, device: Any, dtype: Any) -> None:
        super().__init__()
        self.layer = layer
        self.heads, self.groups, self.limit = config.num_heads, config.n_groups, config.time_step_limit
        keys = config.n_groups * config.state_size
        self.sizes = [config.channels, config.mixed, config.num_heads]
        self.parts = [config.channels, keys, keys]
        self.activation = activation_named(config.hidden_act)
        self.conv1d = ShortConvolution(config.mixed, config.conv_kernel, config.use_conv_bias, device, dtype)
        self.in_proj = Linear(config.hidden_size, sum(self.sizes), config.use_bias, device, dtype)
        self.dt_bias = empty_parameter(self.heads, device=device, dtype=dtype)
        self.A_log = empty_parameter(self.heads, device=device, dtype=dtype)
        self.register_module("norm", self.new_norm(config, device, dtype))
        self.D = empty_parameter(self.heads, device=device, dtype=dtype)
        self.out_proj = Linear(config.channels, config.hidden_size, config.use_bias, device, dtype)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set the rates of decay to 1, 2, ..., H."""
        init.ones_(self.D)
        init.ones_(self.dt_bias)
        if self.A_log.device.type != "meta":
            with no_grad():
                self.A_log.copy_(arange(1, self.heads + 1, device=self.A_log.device).log())

    def new_norm(self, config: Any, device: Any, dtype: Any) -> Module | None:
        """Return the norm of the gated outputs; None for none."""
        return GroupedRMSNorm(config.channels, config.n_groups, config.layer_norm_epsilon, device, dtype)

    def projected(self, x_BTD: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return the gate, the inputs of the convolution, and what the sizes of steps come from."""
        gate_BTC, mixed_BTE, step_BTH = self.in_proj(x_BTD).split(self.sizes, -1)
        return gate_BTC, mixed_BTE, step_BTH

    def forward(self, x_BTD: Tensor, cache: KVCache | None) -> Tensor:
        gate_BTC, mixed_BTE, step_BTH = self.projected(x_BTD)
        mask_BT1 = None if cache is None else cache.text_mask(x_BTD.shape[1])
        mixed_BTE = self.activation(self.conv1d(masked(mixed_BTE, mask_BT1), cache, self.layer))
        x_BTC, b_BTE, c_BTE = masked(mixed_BTE, mask_BT1).split(self.parts, -1)
        step_BTH = F.softplus(widened(step_BTH) + widened(self.dt_bias)).clamp(*self.limit)
        step_BHT = step_BTH.mT
        k_BHTN, q_BHTN = self._shared(b_BTE), self._shared(c_BTE)
        x_BHTP = widened(split_heads(x_BTC, self.heads))
        states = None if cache is None else cache.states(self.layer)
        shape = len(x_BTD), self.heads, k_BHTN.shape[-1], x_BHTP.shape[-1]
        state_BHNP = x_BHTP.new_zeros(shape) if states is None else states[STATE]
        decay_BHT = step_BHT * -widened(self.A_log).exp().unsqueeze(-1)
        y_BHTP, state_BHNP = decayed_attention(q_BHTN, k_BHTN, x_BHTP * step_BHT.unsqueeze(-1), decay_BHT, state_BHNP)
        if cache is not None:
            cache.store(self.layer, **{STATE: state_BHNP})
        y_BHTP = y_BHTP + x_BHTP * widened(self.D)[:, None, None]
        y_BTC = merge_heads(y_BHTP).to(x_BTD.dtype)
        return self.out_proj(y_BTC * F.silu(gate_BTC) if self.norm is None else self.norm(y_BTC, gate_BTC))

    def _shared(self, x_BTE: Tensor) -> Tensor:
        """Return what the heads of each group share, for each head: (B, H, T, N)."""
        return widened(split_heads(x_BTE, self.groups)).repeat_interleave(self.heads // self.groups, 1)


class Mamba2Block(MambaBlock):
    """A mixer of Mamba-2 after a norm, added to its input."""

    mixer_class = Mamba2Mixer


class Mamba2Model(MambaModel):
    """The layers without a head: hidden states (B, T, D) of tokens (B, T).  Args: as DecoderModel"""

    config_class = Mamba2Config
    block_class = Mamba2Block


class Mamba2(Mamba):
    """A language model; Hugging Face's `Mamba2ForCausalLM`.

    Args:    as DecoderModel
    """

    model_class = Mamba2Model
