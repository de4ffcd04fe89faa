"""Small models with every kind of cache: of all positions, of windows, with rotary angles or learned positions, with
states."""

from __future__ import annotations

from typing import Any

import numpy as np

import tallow as tl
from tallow.models.decoders.falcon import Falcon, FalconConfig
from tallow.models.decoders.falcon_h1 import FalconH1, FalconH1Config
from tallow.models.decoders.gpt2 import GPT2, GPT2Config
from tallow.models.decoders.jamba import Jamba, JambaConfig
from tallow.models.decoders.lfm2 import Lfm2, Lfm2Config
from tallow.models.decoders.llama import Llama, LlamaConfig
from tallow.models.decoders.mamba import Mamba, MambaConfig
from tallow.models.decoders.mamba2 import Mamba2, Mamba2Config
from tallow.models.decoders.mistral import Mistral, MistralConfig
from tallow.models.decoders.qwen3_5 import Qwen3_5, Qwen3_5Config
from tallow.models.decoders.rwkv7 import RWKV7, RWKV7Config

VOCAB = 29
CONTEXT = 200
LLAMA = {
    "vocab_size": VOCAB,
    "hidden_size": 24,
    "intermediate_size": 20,
    "num_hidden_layers": 2,
    "num_attention_heads": 6,
    "num_key_value_heads": 2,
    "max_position_embeddings": CONTEXT,
    "initializer_range": 0.3,
}
FALCON = {"vocab_size": VOCAB, "hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 4}
FALCON |= {"max_position_embeddings": CONTEXT, "initializer_range": 0.3}


def make(kind: str) -> Any:
    tl.manual_seed(0)
    if kind == "llama":
        return Llama(LlamaConfig(**LLAMA)).eval()
    if kind == "mistral":
        return Mistral(MistralConfig(**LLAMA, sliding_window=5)).eval()
    if kind == "gpt2":
        sizes = {"vocab_size": VOCAB, "n_positions": CONTEXT, "n_embd": 24, "n_layer": 2, "n_head": 4}
        return GPT2(GPT2Config(**sizes, initializer_range=0.3)).eval()
    if kind == "lfm2":
        layers = ("conv", "full_attention", "conv")
        sizes = LLAMA | {"num_hidden_layers": 3, "conv_L_cache": 4, "block_multiple_of": 4}
        return Lfm2(Lfm2Config(**sizes, layer_types=layers, conv_bias=True)).eval()
    if kind == "qwen3.5":
        layers = ("linear_attention", "full_attention", "linear_attention")
        sizes = LLAMA | {"num_hidden_layers": 3, "linear_num_key_heads": 2, "linear_num_value_heads": 4}
        sizes |= {"linear_key_head_dim": 8, "linear_value_head_dim": 6, "rms_norm_eps": 1e-3, "head_dim": 8}
        return Qwen3_5(Qwen3_5Config(**sizes, layer_types=layers)).eval()
    if kind == "falcon-h1":
        sizes = LLAMA | {"mamba_d_state": 5, "mamba_d_ssm": 36, "mamba_n_heads": 6, "mamba_n_groups": 2}
        return FalconH1(FalconH1Config(**sizes, mamba_conv_bias=True, ssm_multipliers=(1.2, 0.9, 0.7, 1.1, 0.8))).eval()
    if kind == "jamba":
        sizes = LLAMA | {"num_hidden_layers": 3, "mamba_d_state": 5, "mamba_dt_rank": 3, "num_experts": 3}
        sizes |= {"rms_norm_eps": 0.1, "initializer_range": 0.2}
        return Jamba(JambaConfig(**sizes, attn_layer_period=3, attn_layer_offset=1)).eval()
    if kind == "rwkv7":
        sizes = {"vocab_size": VOCAB, "hidden_size": 24, "intermediate_size": 20, "num_hidden_layers": 2}
        sizes |= {"head_dim": 6, "decay_low_rank_dim": 5, "gate_low_rank_dim": 7, "v_low_rank_dim": 3}
        return RWKV7(RWKV7Config(**sizes, initializer_range=0.3)).eval()
    states = {"vocab_size": VOCAB, "hidden_size": 24, "num_hidden_layers": 2, "initializer_range": 0.3}
    if kind == "mamba":
        return Mamba(MambaConfig(**states, state_size=5, time_step_rank=3, use_bias=True)).eval()
    if kind == "mamba2":
        return Mamba2(Mamba2Config(**states, state_size=5, num_heads=6, head_dim=8, n_groups=2)).eval()
    alibi = kind == "alibi"
    return Falcon(FalconConfig(**FALCON, alibi=alibi, multi_query=not alibi)).eval()


ATTENTION = ("llama", "mistral", "gpt2", "rotary falcon", "alibi")
STATES = ("lfm2", "qwen3.5", "mamba", "mamba2", "falcon-h1", "jamba", "rwkv7")
KINDS = ATTENTION + STATES


def text(length: int, seed: int = 0) -> list[int]:
    return np.random.default_rng(seed).integers(0, VOCAB, length).tolist()


def uncached_logits(model: Any, tokens: list[int]) -> np.ndarray[Any, Any]:
    """Return the logits (T, V) of a text, computed without a cache."""
    with tl.no_grad():
        return model(tl.tensor([tokens])).numpy()[0]
