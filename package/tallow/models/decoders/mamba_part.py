"""Config entries of decoders in which a part of some layers is a Mamba."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from tallow.models.decoders.llama import LlamaConfig
from tallow.nn.short_convolution import ShortConvolution
from tallow.nn.state_memory import States


@dataclass(frozen=True, kw_only=True)
class MambaPartConfig(LlamaConfig):
    """The sizes of a decoder with Mambas, as LlamaConfig. The properties have the names that the mixers read.

    Attributes:
        mamba_d_state: the number of elements of a state.
        mamba_d_conv: the width of the convolution.
        mamba_expand: the number of channels / hidden_size.
        mamba_conv_bias: whether the convolution has a bias.
        mamba_proj_bias: whether the first projection has a bias.
    """

    mamba_d_state: int = 16
    mamba_d_conv: int = 4
    mamba_expand: int = 2
    mamba_conv_bias: bool = True
    mamba_proj_bias: bool = False

    always_causal: ClassVar[bool] = True
    # How transformers computes the scan.
    neutral: ClassVar[frozenset[str]] = LlamaConfig.neutral | {"mamba_chunk_size", "use_mamba_kernels", "use_mambapy"}
    neutral |= {"use_associative_scan"}

    @property
    def state_size(self) -> int:
        """The number of elements of a state."""
        return self.mamba_d_state

    @property
    def conv_kernel(self) -> int:
        """The width of the convolution."""
        return self.mamba_d_conv

    @property
    def use_conv_bias(self) -> bool:
        """True if the convolution has a bias."""
        return self.mamba_conv_bias

    @property
    def use_bias(self) -> bool:
        """True if the first projection of a Mamba has a bias."""
        return self.mamba_proj_bias

    @property
    def layer_norm_epsilon(self) -> float:
        """The number that norms add to the mean of squares."""
        return self.rms_norm_eps

    @property
    def channels(self) -> int:
        """The number of channels of a Mamba."""
        return self.mamba_expand * self.hidden_size

    @property
    def mixed(self) -> int:
        """The number of channels of the convolution."""
        return self.channels

    def states_of(self, recurrent: Mapping[str, tuple[int, ...]]) -> States:
        """Return the states of a Mamba: those of its scan, and the last inputs of its convolution."""
        return States({ShortConvolution.state: (self.conv_kernel - 1, self.mixed), **recurrent})


def whole_number(entries: dict[str, Any], name: str) -> int | None:
    """Return an entry if it is a positive integer, so that other entries may be computed from it, or None."""
    value = entries.get(name)
    return value if type(value) is int and value > 0 else None
