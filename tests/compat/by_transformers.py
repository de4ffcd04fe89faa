"""Run architectures that tallow has no file for by transformers: `by_transformers.py {torch,tallow} FOLDER`.

It prints the outputs, and of language models the tokens that follow, by `model_type`. PyTorch writes the folders.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import traceback
from pathlib import Path
from typing import Any

import numpy as np

WRITES, READS = "AutoModelForCausalLM", "AutoModel"
# By `model_type`: the class that loads it, and sizes that do not follow from the names below.
KINDS: dict[str, tuple[str, dict[str, Any]]] = {
    **dict.fromkeys(("afmoe", "apertus", "biogpt", "bitnet", "bloom", "codegen", "diffllama", "doge"), (WRITES, {})),
    **dict.fromkeys(("ernie4_5_moe", "exaone_moe", "falcon_mamba", "flex_olmo", "glm4_moe"), (WRITES, {})),
    **dict.fromkeys(("gpt_bigcode", "gpt_neox_japanese", "gptj", "granitemoe", "granitemoeshared"), (WRITES, {})),
    **dict.fromkeys(("hunyuan_v1_moe", "internlm3", "jetmoe", "llama4_text", "minimax", "mpt"), (WRITES, {})),
    **dict.fromkeys(("nemotron", "olmo_hybrid", "persimmon", "phimoe", "rwkv", "vaultgemma", "xglm"), (WRITES, {})),
    "ctrl": (WRITES, {"dff": 44}),
    "gpt_neo": (WRITES, {"num_layers": 2, "attention_types": [[["global", "local"], 1]]}),
    **dict.fromkeys(("bert-generation", "big_bird", "canine", "convbert", "data2vec-text", "deberta"), (READS, {})),
    **dict.fromkeys(("flaubert", "fnet", "ibert", "layoutlm", "longformer", "luke", "megatron-bert"), (READS, {})),
    **dict.fromkeys(("mra", "nystromformer", "rembert", "roberta-prelayernorm", "roformer", "splinter"), (READS, {})),
    **dict.fromkeys(("squeezebert", "xlm", "xlnet", "yoso"), (READS, {})),
}
WIDTH, HEADS, LAYERS, VOCAB, POSITIONS = 32, 4, 2, 67, 64
SIZES = {
    **dict.fromkeys(("hidden_size", "n_embd", "d_model", "n_embed", "emb_dim", "dim_model", "embedding_size"), WIDTH),
    **dict.fromkeys(("num_hidden_layers", "n_layer", "n_layers", "num_layers"), LAYERS),
    **dict.fromkeys(("num_attention_heads", "n_head", "n_heads", "num_heads", "attention_heads"), HEADS),
    **dict.fromkeys(("num_key_value_heads", "num_kv_heads"), 2),
    **dict.fromkeys(("intermediate_size", "ffn_dim", "n_inner", "d_inner", "dff", "moe_intermediate_size"), 44),
    **dict.fromkeys(("max_position_embeddings", "n_positions", "max_seq_len", "n_ctx", "context_length"), POSITIONS),
    **dict.fromkeys(("num_local_experts", "num_experts", "n_routed_experts"), 4),
    **dict.fromkeys(("num_experts_per_tok",), 2),
    **dict.fromkeys(("head_dim", "d_head", "kv_channels"), 8),
    "vocab_size": VOCAB,
    "rotary_dim": 4,
}


def config_of(transformers: Any, kind: str, changes: dict[str, Any]) -> Any:
    """Return a small config of an architecture."""
    plain = transformers.AutoConfig.for_model(kind)
    names = plain.to_dict().keys() | type(plain).attribute_map.keys()
    sizes = {name: size for name, size in SIZES.items() if name in names}
    sizes |= {name: 0 for name in ("pad_token_id",) if getattr(plain, name, None) is not None}
    ids = {"bos_token_id": 1, "eos_token_id": 2}
    sizes |= {name: value for name, value in ids.items() if getattr(plain, name, None) is not None}
    return transformers.AutoConfig.for_model(kind, **sizes | changes)


def filled(torch: Any, model: Any) -> Any:
    """Set the weights to values from NumPy."""
    rng = np.random.RandomState(3)
    with torch.no_grad():
        for _, tensor in sorted(model.state_dict().items()):
            if tensor.is_floating_point() and tensor.ndim:
                values = rng.standard_normal(tuple(tensor.shape)) / max(2, np.sqrt(tensor.shape[-1]))
                tensor.copy_(torch.from_numpy(np.asarray(values, "float32")).to(tensor.dtype))
    return model


def numbers(torch: Any, model: Any, writes: bool) -> list[float]:
    """Return the outputs, and the tokens that a language model writes."""
    ids = torch.from_numpy(np.random.RandomState(1).randint(3, VOCAB, (2, 11)))
    with torch.no_grad():
        output = model(ids)
    found: list[float] = output[0].float().flatten().tolist()
    if writes:
        found += model.generate(ids, max_new_tokens=5, do_sample=False).flatten().tolist()
    return found


def main(library: str, folder: str, kinds: list[str]) -> None:
    os.environ.update(HF_HUB_OFFLINE="1", TRANSFORMERS_VERBOSITY="error", HF_HUB_DISABLE_PROGRESS_BARS="1")
    if library == "torch":
        torch, transformers = importlib.import_module("torch"), importlib.import_module("transformers")
    else:
        auto = importlib.import_module("tallow.models").AutoModel
    for kind in kinds or KINDS:
        task, changes = KINDS[kind]
        place = str(Path(folder, kind))
        try:
            if library == "torch":
                model = filled(torch, getattr(transformers, task).from_config(config_of(transformers, kind, changes)))
                model.eval().save_pretrained(place)
            else:
                model = auto.from_pretrained(place, via="transformers")
                torch = importlib.import_module("torch")
            print(kind, json.dumps(numbers(torch, model, task == WRITES)), sep="\t", flush=True)
        except Exception as error:  # the reader reports it
            print(kind, json.dumps({"error": f"{type(error).__name__}: {error}"[:400]}), sep="\t", flush=True)
            if kinds:
                traceback.print_exc()


if __name__ == "__main__":
    main(*sys.argv[1:3], sys.argv[3:])
