"""The transformer of "Attention Is All You Need": encoder and decoder layers, stacks of them, and the whole model.

Tensors are (T, N, D), or (N, T, D) with batch_first, or without N. Boolean masks are True where attention is not
allowed; float masks are added to the scores.

Letters: T target positions, S source positions, N batch, D width.
Source:  Vaswani et al. 2017, arXiv:1706.03762; norm_first is Xiong et al. 2020, arXiv:2002.04745
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from tallow.core.creation import full
from tallow.core.tensor import Tensor
from tallow.errors import ArgumentError, ShapeError
from tallow.nn import functional as F
from tallow.nn import init
from tallow.nn.container import ModuleList
from tallow.nn.dropout import Dropout
from tallow.nn.linear import Linear
from tallow.nn.module import Module
from tallow.nn.multihead_attention import MultiheadAttention
from tallow.nn.normalization import LayerNorm

Activation = str | Callable[[Tensor], Tensor]


class _Layer(Module):
    """Base of encoder and decoder layers: their modules, and the residual blocks around them."""

    attentions: tuple[str, ...]  # names of the attention modules; each of them and the feed-forward block has a norm
    activation: Callable[[Tensor], Tensor]

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Activation = F.relu,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        factory = {"device": device, "dtype": dtype}
        for name in self.attentions:
            setattr(self, name, MultiheadAttention(d_model, nhead, dropout, bias, batch_first=batch_first, **factory))
        self.linear1 = Linear(d_model, dim_feedforward, bias, **factory)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias, **factory)
        self.norm_first = norm_first
        blocks = range(1, len(self.attentions) + 2)
        for n in blocks:
            setattr(self, f"norm{n}", LayerNorm(d_model, layer_norm_eps, bias=bias, **factory))
        for n in blocks:
            setattr(self, f"dropout{n}", Dropout(dropout))
        self.activation = _activation(activation)

    def _block(self, x: Tensor, norm: Module, block: Callable[[Tensor], Tensor]) -> Tensor:
        """Apply a residual block, with normalization before or after."""
        return x + block(norm(x)) if self.norm_first else norm(x + block(x))

    def _feed_forward(self, x: Tensor) -> Tensor:
        return self.linear2(self.dropout(self.activation(self.linear1(x))))


class TransformerEncoderLayer(_Layer):
    """Self-attention, then a feed-forward block; each with dropout, a residual connection and LayerNorm.

    Args:    as torch.nn.TransformerEncoderLayer; activation: "relu", "gelu" or a function
    Shapes:  src (S, N, D), src_mask (S, S) or (N · heads, S, S), src_key_padding_mask (N, S) -> (S, N, D)
    """

    attentions = ("self_attn",)

    def forward(
        self,
        src: Tensor,
        src_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool = False,
    ) -> Tensor:
        def attend(x: Tensor) -> Tensor:
            output, _ = self.self_attn(x, x, x, src_key_padding_mask, False, src_mask, is_causal=is_causal)
            return self.dropout1(output)

        x = self._block(src, self.norm1, attend)
        return self._block(x, self.norm2, lambda x: self.dropout2(self._feed_forward(x)))


class TransformerDecoderLayer(_Layer):
    """Self-attention, cross-attention to the encoder's output, and a feed-forward block; see TransformerEncoderLayer.

    Args:    as torch.nn.TransformerDecoderLayer
    Shapes:  tgt (T, N, D), memory (S, N, D), tgt_mask (T, T), memory_mask (T, S), tgt_key_padding_mask (N, T),
             memory_key_padding_mask (N, S) -> (T, N, D)
    """

    attentions = ("self_attn", "multihead_attn")

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
    ) -> Tensor:
        def attend(x: Tensor) -> Tensor:
            output, _ = self.self_attn(x, x, x, tgt_key_padding_mask, False, tgt_mask, is_causal=tgt_is_causal)
            return self.dropout1(output)

        def attend_to_memory(x: Tensor) -> Tensor:
            output, _ = self.multihead_attn(
                x, memory, memory, memory_key_padding_mask, False, memory_mask, is_causal=memory_is_causal
            )
            return self.dropout2(output)

        x = self._block(tgt, self.norm1, attend)
        x = self._block(x, self.norm2, attend_to_memory)
        return self._block(x, self.norm3, lambda x: self.dropout3(self._feed_forward(x)))


class TransformerEncoder(Module):
    """A stack of copies of an encoder layer, and a final norm.

    Args:    as torch.nn.TransformerEncoder; enable_nested_tensor and mask_check have no effect: every position is
             computed, including padding, where PyTorch's fast path returns zeros
    Shapes:  as TransformerEncoderLayer; is_causal None detects a causal mask
    """

    def __init__(
        self,
        encoder_layer: Module,
        num_layers: int,
        norm: Module | None = None,
        enable_nested_tensor: bool = True,
        mask_check: bool = True,
    ) -> None:
        super().__init__()
        self.layers = _copies(encoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm

    def forward(
        self,
        src: Tensor,
        mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool | None = None,
    ) -> Tensor:
        causal = _is_causal(mask) if is_causal is None else is_causal
        for layer in self.layers:
            src = layer(src, src_mask=mask, is_causal=causal, src_key_padding_mask=src_key_padding_mask)
        return src if self.norm is None else self.norm(src)


class TransformerDecoder(Module):
    """A stack of copies of a decoder layer, and a final norm.

    Args:    as torch.nn.TransformerDecoder
    Shapes:  as TransformerDecoderLayer; tgt_is_causal None detects a causal mask
    """

    def __init__(self, decoder_layer: Module, num_layers: int, norm: Module | None = None) -> None:
        super().__init__()
        self.layers = _copies(decoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        causal = _is_causal(tgt_mask) if tgt_is_causal is None else tgt_is_causal
        for layer in self.layers:
            tgt = layer(
                tgt,
                memory,
                tgt_mask=tgt_mask,
                memory_mask=memory_mask,
                tgt_key_padding_mask=tgt_key_padding_mask,
                memory_key_padding_mask=memory_key_padding_mask,
                tgt_is_causal=causal,
                memory_is_causal=memory_is_causal,
            )
        return tgt if self.norm is None else self.norm(tgt)


class Transformer(Module):
    """An encoder, and a decoder that attends to its output.

    Args:    as torch.nn.Transformer; custom_encoder, custom_decoder: modules that replace the stacks
    Shapes:  src (S, N, D), tgt (T, N, D) -> (T, N, D); masks as in the layers
    """

    def __init__(
        self,
        d_model: int = 512,
        nhead: int = 8,
        num_encoder_layers: int = 6,
        num_decoder_layers: int = 6,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Activation = F.relu,
        custom_encoder: Module | None = None,
        custom_decoder: Module | None = None,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        sizes = (d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first, bias)

        def norm() -> LayerNorm:
            return LayerNorm(d_model, layer_norm_eps, bias=bias, device=device, dtype=dtype)

        if custom_encoder is None:
            encoder_layer = TransformerEncoderLayer(*sizes, device=device, dtype=dtype)
            custom_encoder = TransformerEncoder(encoder_layer, num_encoder_layers, norm())
        if custom_decoder is None:
            decoder_layer = TransformerDecoderLayer(*sizes, device=device, dtype=dtype)
            custom_decoder = TransformerDecoder(decoder_layer, num_decoder_layers, norm())
        self.encoder = custom_encoder
        self.decoder = custom_decoder
        self.d_model = d_model
        self.nhead = nhead
        self.batch_first = batch_first
        self._reset_parameters()

    def _reset_parameters(self) -> None:
        for parameter in self.parameters():
            if parameter.ndim > 1:
                init.xavier_uniform_(parameter)

    def forward(
        self,
        src: Tensor,
        tgt: Tensor,
        src_mask: Tensor | None = None,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        src_is_causal: bool | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        batch_dim = 0 if self.batch_first else 1
        if src.ndim == 3 and src.shape[batch_dim] != tgt.shape[batch_dim]:
            raise ShapeError(
                f"Transformer: src {tuple(src.shape)} and tgt {tuple(tgt.shape)} have different batch sizes"
            )
        if src.shape[-1] != self.d_model or tgt.shape[-1] != self.d_model:
            raise ShapeError(
                f"Transformer: src {tuple(src.shape)} and tgt {tuple(tgt.shape)} must have d_model={self.d_model} "
                "features"
            )
        memory = self.encoder(src, mask=src_mask, src_key_padding_mask=src_key_padding_mask, is_causal=src_is_causal)
        return self.decoder(
            tgt,
            memory,
            tgt_mask=tgt_mask,
            memory_mask=memory_mask,
            tgt_key_padding_mask=tgt_key_padding_mask,
            memory_key_padding_mask=memory_key_padding_mask,
            tgt_is_causal=tgt_is_causal,
            memory_is_causal=memory_is_causal,
        )

    @staticmethod
    def generate_square_subsequent_mask(sz: int, device: Any = None, dtype: Any = None) -> Tensor:
        """Return the additive causal mask: -inf above the diagonal, else 0.  Shapes: (sz, sz)"""
        return full((sz, sz), float("-inf"), dtype=dtype, device=device).triu(1)


def _copies(layer: Module, count: int) -> ModuleList:
    return ModuleList(copy.deepcopy(layer) for _ in range(count))


def _activation(activation: Activation) -> Callable[[Tensor], Tensor]:
    if not isinstance(activation, str):
        return activation
    if activation not in ("relu", "gelu"):
        raise ArgumentError(f"activation={activation!r}", hint="use 'relu', 'gelu' or a function")
    return F.relu if activation == "relu" else F.gelu


def _is_causal(mask: Tensor | None) -> bool:
    """Return whether a mask is that of `generate_square_subsequent_mask`: attention is faster without the mask."""
    if mask is None or mask.ndim != 2 or mask.shape[0] != mask.shape[1] or not mask.is_floating_point():
        return False
    causal = Transformer.generate_square_subsequent_mask(mask.shape[0], mask.device, mask.dtype)
    return bool((mask == causal).all().item())
