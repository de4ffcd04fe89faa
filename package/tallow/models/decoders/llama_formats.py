"""Convert a Llama to a llama2.c checkpoint, and models of any design to a Hugging Face folder.

The formats rotate different pairs of a head's elements: llama2.c neighbours, (2i, 2i + 1), Hugging Face (i, i + K/2).
The rows of the query and key projections are ordered accordingly.

Letters: D width, K head width.
"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from tallow import devices, dtypes
from tallow.core.tensor import Tensor, wrap
from tallow.dtypes import Array
from tallow.errors import ArgumentError
from tallow.io import llama2c, safetensors
from tallow.io.whole_folder import atomic_folder
from tallow.models.causal_lm import CausalLM
from tallow.models.config import CONFIG, Config, write_entries
from tallow.models.decoders.gpt2 import GPT2
from tallow.models.decoders.llama import Llama, LlamaConfig
from tallow.models.decoders.mistral import MistralConfig
from tallow.models.encoders.bert import BertForSequenceClassification
from tallow.models.pretrained import PretrainedModel
from tallow.nn.block_layers import widened_state

OWN = ("rope_interleaved", "labels", "classifier_dropout")  # config fields of tallow alone, or of other heads
PROJECTIONS = ("self_attn.q_proj", "self_attn.k_proj")  # whose results rotate


def llama2c_form(model: Llama) -> tuple[llama2c.Header, dict[str, Array]]:
    """Return a model as the header and arrays of a llama2.c checkpoint, version 0, in float32.

    Raises:  ArgumentError for a model that `run.c` cannot compute: biases, other rotary settings, another eps, wide
             heads, sliding windows, other activations
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
                hint="save it as a Hugging Face folder",
            )
    if (config.rope_scaling or {}).get("rope_type", "default") != "default" or type(model) is not Llama:
        raise ArgumentError(
            f"llama2.c cannot compute this {type(model).__name__}", hint="save it as a Hugging Face folder"
        )
    state = {name: _float32(array) for name, array in _state(model, interleaved=True).items()}
    arrays = {
        "token_embedding_table": state["model.embed_tokens.weight"],
        "rms_final_weight": state["model.norm.weight"],
    }
    if not config.tie_word_embeddings:
        arrays["wcls"] = state["lm_head.weight"]
    for name, key in llama2c.LAYER_NAMES.items():
        layers = [state[f"model.layers.{i}.{name}.weight"] for i in range(config.num_hidden_layers)]
        arrays[key] = np.stack(layers)
    return header, arrays


def save_hugging_face(model: PretrainedModel, folder: str | Path, dtype: Any = None) -> None:
    """Write a model as a Hugging Face folder, with `config.json` and `model.safetensors`.

    The folder is replaced as a whole; other files in it stay.

    Args:  dtype: of the file; None means the model's
    """
    entries, state = hugging_face_form(model, dtype)
    with atomic_folder(folder) as stage:
        safetensors.save(state, stage / "model.safetensors", {"format": "pt"})
        write_entries(entries, stage / CONFIG)


def hugging_face_form(model: PretrainedModel, dtype: Any = None) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Return the entries of `config.json` and the tensors of `model.safetensors`, in the form of transformers.

    Args:
        model: a language model, an encoder without a head, or a classifier of texts.
        dtype: of the tensors; None means the model's
    """
    config = {name: value for name, value in asdict(model.config).items() if name not in OWN}
    if config.pop("tiled_value_heads", False):
        raise ArgumentError(
            f"a {type(model).__name__} of a GGUF file has its value heads in another order than files of Hugging Face",
            hint="convert the model from Hugging Face instead",
        )
    for name, theirs in model.config.file_names.items():
        config[theirs] = config.pop(name)
    if config.get("head_dim", 0) is None:
        del config["head_dim"]  # some models of transformers do not accept null here
    if config.get("is_causal"):
        del config["is_causal"]  # as in all files but those of decoders that encode texts
    if "eos_token_id" in config:
        config["eos_token_id"] = list(config["eos_token_id"]) or None
    if isinstance(model, BertForSequenceClassification):
        config["id2label"] = {str(i): label for i, label in enumerate(model.config.labels)}
    dtype = next(model.parameters()).dtype if dtype is None else dtypes.as_dtype(dtype)
    # Hugging Face's Llama has no sliding window: with one, the model is a Mistral.
    is_mistral = type(model) is Llama and model.config.sliding_window
    kind = MistralConfig if is_mistral else type(model.config)
    interleaved = getattr(kind, "files_interleave", False)
    entries = {"architectures": [_architecture(model, kind)], "model_type": kind.model_types[0]}
    entries |= config | {"torch_dtype": dtype.name}
    state = _state(model, interleaved=interleaved)
    exact = {name for name in state if name.endswith(kind.in_float32)}
    return entries, {name: wrap(array).to(dtypes.float32 if name in exact else dtype) for name, array in state.items()}


def _architecture(model: PretrainedModel, kind: type[Config]) -> str:
    """Return the name of a model's class in transformers."""
    if not isinstance(model, CausalLM):
        return type(model).__name__
    return "GPT2LMHeadModel" if isinstance(model, GPT2) else f"{kind.__name__.removesuffix('Config')}ForCausalLM"


def _state(model: PretrainedModel, *, interleaved: bool) -> dict[str, Array]:
    """Return the model's arrays on the host, with interleaved rotary pairs or not."""
    arrays = {name: tensor.detach().cpu().array for name, tensor in widened_state(model).items()}
    if isinstance(model, Llama) and model.config.rope_interleaved != interleaved:
        for name in arrays:
            if name.rpartition(".")[0].endswith(PROJECTIONS):
                arrays[name] = reordered(arrays[name], model.config.head_width, to_interleaved=interleaved)
    return arrays


def reordered(rows: Array, head_width: int, *, to_interleaved: bool) -> Array:
    """Return the rows of a projection with the two halves of each head interleaved, or separated.

    Shapes:  rows (heads · K, ...) -> the same
    """
    pairs = (2, head_width // 2) if to_interleaved else (head_width // 2, 2)
    split = rows.reshape(-1, *pairs, *rows.shape[1:]).swapaxes(1, 2)
    return devices.array_module(rows).ascontiguousarray(split).reshape(rows.shape)


def _float32(array: Array) -> Array:
    return dtypes.cast(array, dtypes.float32)
