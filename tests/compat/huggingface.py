"""Load models of transformers from folders and compute: `huggingface.py {torch,tallow} FOLDER` prints numbers by model.

PyTorch writes the folders, in shards; both libraries load them, by default, in bfloat16 and by `device_map`.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np

SIZES: dict[str, Any] = {
    "vocab_size": 67,
    "hidden_size": 36,
    "num_hidden_layers": 2,
    "num_attention_heads": 6,
    "intermediate_size": 44,
    "max_position_embeddings": 64,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
GROUPED = {**SIZES, "num_key_value_heads": 2, "head_dim": 6}
CONFIGS: dict[str, tuple[str, dict[str, Any]]] = {
    "Bert": ("ForMaskedLM", SIZES),
    "GPT2": ("LMHeadModel", {"vocab_size": 67, "n_embd": 36, "n_layer": 2, "n_head": 6, "n_positions": 64}),
    "Llama": ("ForCausalLM", GROUPED),
    "Gemma2": ("ForCausalLM", {**GROUPED, "sliding_window": 7}),
    "Mixtral": ("ForCausalLM", {**GROUPED, "num_local_experts": 5}),
    "T5": (
        "ForConditionalGeneration",
        {"vocab_size": 67, "d_model": 36, "d_kv": 6, "num_heads": 6, "decoder_start_token_id": 0},
    ),
}


def filled(torch: Any, model: Any) -> Any:
    """Set the weights to values from NumPy."""
    rng = np.random.RandomState(3)
    with torch.no_grad():
        for _, tensor in sorted(model.state_dict().items()):
            if tensor.is_floating_point():
                values = rng.standard_normal(tuple(tensor.shape)) / np.sqrt(tensor.shape[-1])
                tensor.copy_(torch.from_numpy(np.asarray(values, "float32")))
    return model


def numbers(torch: Any, kind: Any, folder: str, name: str) -> list[Any]:
    """Return the loss, logits, norms of gradients and generated tokens of a model loaded from a folder."""
    rng = np.random.RandomState(1)
    ids = torch.from_numpy(rng.randint(3, 67, (2, 11)))
    mask = torch.ones_like(ids)
    mask[0, :3] = 0
    model = kind.from_pretrained(folder).eval()
    output = model(input_ids=ids, attention_mask=mask, labels=ids)
    output.loss.backward()
    gradients = [p.grad for _, p in sorted(model.named_parameters()) if p.grad is not None]
    found = [float(output.loss), *output.logits.detach().flatten().tolist()]
    found += [float(gradient.double().norm()) for gradient in gradients]
    half = kind.from_pretrained(folder, dtype=torch.bfloat16, low_cpu_mem_usage=True)
    found += [float(p.detach().double().norm()) for _, p in sorted(half.named_parameters())]
    if name != "Bert":
        for options in ({}, {"num_beams": 3, "no_repeat_ngram_size": 2}):
            tokens = model.generate(ids, attention_mask=mask, max_new_tokens=7, do_sample=False, **options)
            found += tokens.flatten().tolist()
    return found


if __name__ == "__main__":
    library, folder = sys.argv[1:]
    os.environ.update(HF_HUB_OFFLINE="1", TRANSFORMERS_VERBOSITY="error", HF_HUB_DISABLE_PROGRESS_BARS="1")
    if library == "tallow":
        importlib.import_module("tallow.compat").install_torch()
    torch, transformers = importlib.import_module("torch"), importlib.import_module("transformers")
    for name, (task, options) in CONFIGS.items():
        kind, place = getattr(transformers, name + task), str(Path(folder, name))
        if library == "torch":
            model = filled(torch, kind(getattr(transformers, f"{name}Config")(**options)))
            model.save_pretrained(place, max_shard_size="40KB")
        print(name, json.dumps(numbers(torch, kind, place, name)), sep="\t", flush=True)
