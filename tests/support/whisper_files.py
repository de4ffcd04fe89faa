"""A small Whisper, and its files in the formats of OpenAI and whisper.cpp."""

from __future__ import annotations

import struct

import numpy as np

import tallow as tl
from tallow.models import Whisper, WhisperConfig

TEXT_TOKENS = 260
CONFIG = WhisperConfig(
    vocab_size=TEXT_TOKENS + 99 + 8 + 1501,
    num_mel_bins=6,
    d_model=32,
    encoder_layers=2,
    encoder_attention_heads=2,
    encoder_ffn_dim=128,
    decoder_layers=3,
    decoder_attention_heads=4,
    decoder_ffn_dim=128,
    max_source_positions=10,
    max_target_positions=12,
    initializer_range=0.3,  # large enough that every layer affects the output
)
DIMS = {
    "n_vocab": CONFIG.vocab_size,
    "n_audio_ctx": 10,
    "n_audio_state": 32,
    "n_audio_head": 2,
    "n_audio_layer": 2,
    "n_text_ctx": 12,
    "n_text_state": 32,
    "n_text_head": 4,
    "n_text_layer": 3,
    "n_mels": 6,
}


def openai_names(model: Whisper) -> dict[str, tl.Tensor]:
    """Return the state dict under the names of OpenAI's checkpoints."""
    pairs = (
        *(
            (".layers.", ".blocks."),
            (".encoder_attn_layer_norm.", ".cross_attn_ln."),
            (".encoder_attn.", ".cross_attn."),
        ),
        *((".self_attn_layer_norm.", ".attn_ln."), (".self_attn.", ".attn."), (".q_proj.", ".query.")),
        *((".k_proj.", ".key."), (".v_proj.", ".value."), (".out_proj.", ".out."), (".fc1.", ".mlp.0.")),
        *((".fc2.", ".mlp.2."), (".final_layer_norm.", ".mlp_ln."), ("encoder.layer_norm.", "encoder.ln_post.")),
        *(("decoder.layer_norm.", "decoder.ln."), ("embed_tokens.", "token_embedding.")),
        *(("embed_positions.weight", "positional_embedding"), ("model.", "")),
    )
    renamed = {}
    for name, tensor in model.state_dict().items():
        for ours, theirs in pairs:
            name = name.replace(ours, theirs)
        renamed[name] = tensor
    return renamed


def ggml(model: Whisper, kind: int = 0) -> bytes:
    """Return the model in whisper.cpp's format; `kind` 8 stores matrices as Q8_0."""
    words = [bytes([i]) for i in range(256)] + [b"he", b"ll", b"llo", b"hello"]
    out = [b"lmgg", struct.pack("<11i", *DIMS.values(), kind), struct.pack("<2i", 6, 3), bytes(4 * 6 * 3)]
    out += [struct.pack("<i", len(words)), *(struct.pack("<i", len(word)) + word for word in words)]
    for name, tensor in openai_names(model).items():
        array = tensor.numpy()
        shape = (*array.shape, 1) if name.endswith(("conv1.bias", "conv2.bias")) else array.shape
        is_matrix = kind == 8 and array.ndim == 2 and "positional" not in name
        head = struct.pack("<3i", len(shape), len(name), kind if is_matrix else 0)
        data = array.tobytes()
        if is_matrix:
            blocks = array.reshape(-1, 32)
            scales = (np.abs(blocks).max(1, keepdims=True) / 127).astype("<f2")
            codes = np.rint(blocks / scales.astype(np.float32)).astype(np.int8)
            data = b"".join(s.tobytes() + c.tobytes() for s, c in zip(scales, codes, strict=True))
        out += [head, struct.pack(f"<{len(shape)}i", *shape[::-1]), name.encode(), data]
    return b"".join(out)
