"""A Llama in the other places' forms: llama2.c's checkpoints, and folders of Hugging Face's.

The two turn other pairs of a head's elements: llama2.c neighbours, (2i, 2i + 1), Hugging Face's (i, i + K/2). The rows
of the projections of queries and keys are therefore in another order.

Letters: D width, K head width.
"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from tallow import dtypes
from tallow.dtypes import Array
from tallow.errors import ArgumentError
from tallow.io import llama2c, safetensors
from tallow.models.config import CONFIG, write_entries
from tallow.models.llama import LLAMA2C_NAMES, Llama, LlamaConfig
from tallow.tensor import Tensor, wrap

OWN = ("rope_interleaved", "labels", "classifier_dropout")  # fields of the config that are tallow's, or other heads'
TURNED = ("self_attn.q_proj.weight", "self_attn.k_proj.weight")


def llama2c_form(model: Llama) -> tuple[llama2c.Header, dict[str, Array]]:
    """A model as the header and the arrays of a checkpoint of llama2.c, version 0, in float32.

    Raises:  ArgumentError for what `run.c` does not compute: biases, other rotary settings, norms with another eps,
             wide heads, sliding windows, other activations
    """
    config = model.config
    header = llama2c.Header(
        dim=config.hidden_size,
        hidden_dim=config.intermediate_size,
        n_layers=config.num_hidden_layers,
        n_heads=config.num_attention_heads,
        n_kv_heads=config.num_key_value_heads,
        vocab_size=config.vocab_size,
        seq_len=config.max_position_embeddings,
        shared_classifier=config.tie_word_embeddings,
        version=0,
    )
    implied = LlamaConfig.from_llama2c(header)
    for name in (
        "rms_norm_eps",
        "rope_theta",
        "attention_bias",
        "mlp_bias",
        "sliding_window",
        "head_width",
        "hidden_act",
    ):
        if getattr(config, name) != getattr(implied, name):
            raise ArgumentError(
                f"llama2.c computes with {name}={getattr(implied, name)!r}; this model has {getattr(config, name)!r}",
                mend="save it as a folder of Hugging Face's",
            )
    if (config.rope_scaling or {}).get("rope_type", "default") != "default" or type(model) is not Llama:
        raise ArgumentError(f"llama2.c does not compute what {type(model).__name__} does", mend="save it as a folder")
    state = {name: _float32(array) for name, array in _state(model, interleaved=True).items()}
    arrays = {
        "token_embedding_table": state["model.embed_tokens.weight"],
        "rms_final_weight": state["model.norm.weight"],
    }
    if not config.tie_word_embeddings:
        arrays["wcls"] = state["lm_head.weight"]
    for name, key in LLAMA2C_NAMES.items():
        layers = [state[f"model.layers.{i}.{name}.weight"] for i in range(config.num_hidden_layers)]
        arrays[key] = np.stack(layers)
    return header, arrays


def save_hugging_face(model: Llama, folder: str | Path, dtype: Any = None) -> None:
    """Write a model as a folder that transformers loads, with `config.json` and `model.safetensors`.

    Args:  dtype: of the file; as the model's if None
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    entries, state = hugging_face_form(model, dtype)
    safetensors.save(state, folder / "model.safetensors", {"format": "pt"})
    write_entries(entries, folder / CONFIG)


def hugging_face_form(model: Llama, dtype: Any = None) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """The entries of `config.json`, and the tensors of `model.safetensors`, as transformers has them.

    Args:  dtype: of the tensors; as the model's if None
    """
    config = {name: value for name, value in asdict(model.config).items() if name not in OWN}
    if model.config.head_dim is None:
        del config["head_dim"]  # not every model of transformers takes null for what follows from others
    # Hugging Face's Llama has no windows: with one it is a Mistral.
    name = "Mistral" if type(model) is Llama and model.config.sliding_window else type(model).__name__
    entries = {"architectures": [f"{name}ForCausalLM"], "model_type": name.lower()}
    dtype = model.head_weight.dtype if dtype is None else dtypes.as_dtype(dtype)
    entries |= config | {"torch_dtype": dtype.name, "eos_token_id": list(model.config.eos_token_id) or None}
    return entries, {name: wrap(array).to(dtype) for name, array in _state(model, interleaved=False).items()}


def _state(model: Llama, *, interleaved: bool) -> dict[str, Array]:
    """The model's arrays, on the host, with the pairs of a head's elements as asked for."""
    arrays = {name: tensor.detach().cpu().array for name, tensor in model.state_dict().items()}
    if model.config.rope_interleaved != interleaved:
        for name in arrays:
            if name.endswith(TURNED):
                arrays[name] = _exchanged(arrays[name], model.config.head_width, to_interleaved=interleaved)
    return arrays


def _exchanged(rows: Array, head_width: int, *, to_interleaved: bool) -> Array:
    """The rows (heads · K, D) of a projection with a head's two halves of K woven into each other, or parted again."""
    pairs = (2, head_width // 2) if to_interleaved else (head_width // 2, 2)
    return np.ascontiguousarray(rows.reshape(-1, *pairs, rows.shape[-1]).swapaxes(1, 2)).reshape(rows.shape)


def _float32(array: Array) -> Array:
    return dtypes.cast(array, dtypes.float32)
