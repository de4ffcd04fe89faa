"""Llama, Mistral, Qwen2 and Qwen3 out of GGUF files, llama.cpp's: model and tokenizer in one.

Quantised weights are widened while they are loaded, one tensor after the other.

Source:  https://github.com/ggml-org/ggml/blob/master/docs/gguf.md; names of tensors as in llama.cpp's
         `gguf-py/gguf/constants.py`
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tallow import dtypes
from tallow.errors import CheckpointError
from tallow.io.gguf import GGUF
from tallow.io.source import Source
from tallow.models.llama import Llama, LlamaConfig
from tallow.models.qwen import Qwen2, Qwen3
from tallow.tensor import Tensor
from tallow.text.gguf_tokenizer import end_ids

MODELS: dict[str, type[Llama]] = {"llama": Llama, "qwen2": Qwen2, "qwen3": Qwen3}
OUTER = {"token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head"}
INNER = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "attn_q_norm": "self_attn.q_norm",
    "attn_k_norm": "self_attn.k_norm",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
DIVISORS = "rope_freqs.weight"  # of the rotary frequencies, Llama 3's
# Keys of the metadata, below the architecture's name -> fields of the config.
FIELDS = {
    "block_count": "num_hidden_layers",
    "embedding_length": "hidden_size",
    "feed_forward_length": "intermediate_size",
    "attention.head_count": "num_attention_heads",
    "attention.head_count_kv": "num_key_value_heads",
    "attention.key_length": "head_dim",
    "attention.layer_norm_rms_epsilon": "rms_norm_eps",
    "attention.sliding_window": "sliding_window",
    "context_length": "max_position_embeddings",
    "rope.freq_base": "rope_theta",
}


def load(
    source: Source, dtype: Any = None, device: Any = None, *, progress: Callable[[int, int], None] | None = None
) -> Llama:
    """The model of a GGUF file; `lm.tokenizer`, `lm.chat` and `lm.generate_text` take their tokenizer from it too.

    Args:
        dtype: of the weights, whatever they are in the file; None means float32.
        progress: is told how many tensors are read, and of how many.

    Raises:  CheckpointError for another architecture, a file that is malformed, or weights that do not fit
    """
    file = GGUF(source)
    model_class, config = _config(file)
    target = dtypes.float32 if dtype is None else dtypes.as_dtype(dtype)
    state: dict[str, Tensor] = {}
    for done, name in enumerate(file, 1):
        if name != DIVISORS:
            state[_name(name, file.name)] = file[name].to(target)
        if progress is not None:
            progress(done, len(file))
    model = model_class.assemble(config, state, None, device, file.name)
    model.folder = Path(source) if isinstance(source, str | os.PathLike) else None
    return model


def _config(file: GGUF) -> tuple[type[Llama], LlamaConfig]:
    architecture = file.metadata.get("general.architecture")
    if architecture not in MODELS:
        raise CheckpointError(
            f"{file.name}: its architecture is {architecture!r}; {', '.join(MODELS)} are read", mend="tallow inspect it"
        )
    model_class = MODELS[architecture]
    given = {field: file.metadata.get(f"{architecture}.{key}") for key, field in FIELDS.items()}
    _default_heads(given, file.metadata.get(f"{architecture}.attention.value_length"), file.name)
    given |= {"bos_token_id": file.metadata.get("tokenizer.ggml.bos_token_id")}
    given |= {"eos_token_id": end_ids(file.metadata)}
    if "token_embd.weight" not in file:
        raise CheckpointError(f"{file.name} has no token_embd.weight", mend="it may be a part of a model")
    given |= {"vocab_size": file.info("token_embd.weight").shape[0], "tie_word_embeddings": "output.weight" not in file}
    given["attention_bias"] = "blk.0.attn_q.bias" in file
    given["rope_interleaved"] = architecture == "llama"  # llama.cpp has put its rows in this order
    given["rope_scaling"] = _scaling(file, architecture)
    entries = {name: value for name, value in given.items() if value is not None}
    config = model_class.config_class.from_entries(entries, file.name)
    assert isinstance(config, LlamaConfig)
    return model_class, config


def _default_heads(given: dict[str, Any], value_width: Any, source: str) -> None:
    """What the format says of heads that a file says nothing of: as many of keys and values as of queries, and as wide
    as they are together the model's width. It knows no other defaults, though the models' configs do."""
    heads, width = given["num_attention_heads"], given["hidden_size"]
    if given["num_key_value_heads"] is None:
        given["num_key_value_heads"] = heads
    if type(heads) is not int or type(width) is not int or heads < 1:
        return  # the config says so
    usual = width // heads if width % heads == 0 else None
    if given["head_dim"] is None:
        given["head_dim"] = usual
    value_width = usual if value_width is None else value_width
    if value_width is not None and value_width != given["head_dim"]:
        raise CheckpointError(
            f"{source}: heads of {given['head_dim']} elements for keys and {value_width} for values; "
            "tallow computes such of one width only"
        )


def _scaling(file: GGUF, architecture: str) -> Mapping[str, Any] | None:
    kind = file.metadata.get(f"{architecture}.rope.scaling.type", "none")
    if kind == "linear":
        return {"rope_type": "linear", "factor": file.metadata.get(f"{architecture}.rope.scaling.factor")}
    if kind != "none":
        raise CheckpointError(f"{file.name}: rotary positions are scaled by {kind!r}; 'linear' is read")
    if DIVISORS in file:
        return {"rope_type": "divisors", "divisors": file[DIVISORS].tolist()}
    return None


def _name(name: str, source: str) -> str:
    """The parameter that a tensor is, in Hugging Face's words."""
    parts = name.split(".")
    if len(parts) == 2 and parts[0] in OUTER:
        return f"{OUTER[parts[0]]}.{parts[1]}"
    if len(parts) == 4 and parts[0] == "blk" and parts[2] in INNER:
        return f"model.layers.{parts[1]}.{INNER[parts[2]]}.{parts[3]}"
    raise CheckpointError(f"{source}: no part of a Llama has the tensor {name!r:.200}", mend="tallow inspect it")
