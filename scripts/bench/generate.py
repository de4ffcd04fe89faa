"""Prefill and decoding of Llamas with random weights, in float32, greedy, with a batch of one.

Compares tallow, transformers and, if llama-cpp-python and gguf are installed, llama.cpp.

Claims, natively, with equal numbers of threads: 3 times the tokens per second of transformers for stories15M's shape,
1.2 times those of llama.cpp for stories110M's, and prompts of 256 tokens at 0.8 times transformers' speed.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

import tallow as tl
from bench import turns
from bench.report import Row
from tallow.io import safetensors

NAME = "generate"
SHAPES = {
    "stories15M": {"hidden_size": 288, "intermediate_size": 768, "num_hidden_layers": 6, "num_attention_heads": 6},
    "stories110M": {"hidden_size": 768, "intermediate_size": 2048, "num_hidden_layers": 12, "num_attention_heads": 12},
}
VOCABULARY, CONTEXT, PROMPT, TOKENS, THREADS = 32000, 1024, 256, 24, (1, 2)
LIBRARIES = {"tallow": "tallow", "transformers": "torch", "llama_cpp": "llama_cpp"}
Work = Callable[[int, int], Any]  # tokens of the prompt, and tokens generated


def measure(options: dict[str, Any]) -> dict[str, Any]:
    libraries = {name: module for name, module in LIBRARIES.items() if find_spec(module)}
    rows: list[Row] = []
    for shape, sizes in SHAPES.items():
        _write(Path(shape), sizes)
        for threads in THREADS:
            with ExitStack() as stack:
                workers = [
                    stack.enter_context(turns.worker(module, threads, f"bench.generate.{library}", shape, str(threads)))
                    for library, module in libraries.items()
                ]
                for what, prompt, tokens in (("decode", 1, TOKENS), ("prefill", PROMPT, 1)):
                    costs = turns.in_turn(workers, threads, options["repeats"], prompt, tokens)
                    rates = [max(prompt, tokens) / cost.best_s for cost in costs]
                    rows.append({"shape": shape, "what": what, "threads": threads} | turns.comparison(libraries, rates))
    notes = [
        f"tokens per second; decode: {TOKENS} after one; prefill: {PROMPT} at once, and one more",
        "the best turn, in processor time if there is one thread",
        turns.load_note(),
    ]
    return {"rows": rows, "notes": notes}


# ------------------------------------------------------------------------------------------------------ in the workers


def tallow(name: str, threads: str) -> Work:
    from tallow.generation import Sampler, generate
    from tallow.models import AutoModel

    model, greedy = AutoModel.from_pretrained(name), Sampler(temperature=0.0)
    return lambda prompt, tokens: [*generate(model, [1] * prompt, max_tokens=tokens, sample=greedy, stop_ids=set())]


def transformers(name: str, threads: str) -> Work:
    import torch
    from transformers import LlamaForCausalLM

    model = LlamaForCausalLM.from_pretrained(name).eval()

    def work(prompt: int, tokens: int) -> Any:
        ids = torch.ones((1, prompt), dtype=torch.long)
        return model.generate(
            ids, attention_mask=ids, do_sample=False, min_new_tokens=tokens, max_new_tokens=tokens, pad_token_id=0
        )

    return work


def llama_cpp(name: str, threads: str) -> Work:
    import llama_cpp

    sizes = {"n_ctx": CONTEXT, "n_batch": PROMPT, "n_ubatch": PROMPT}
    sizes |= dict.fromkeys(("n_threads", "n_threads_batch"), int(threads))
    model = llama_cpp.Llama(str(Path(name, "model.gguf")), **sizes, verbose=False)

    def work(prompt: int, tokens: int) -> Any:
        model.reset()
        stream = model.generate([1] * prompt, temp=0.0, repeat_penalty=1.0)
        return [next(stream) for _ in range(tokens)]

    return work


# --------------------------------------------------------------------------------------------------------- their files


def _write(folder: Path, sizes: dict[str, int]) -> None:
    """Write a checkpoint in Hugging Face's format, and as GGUF if llama.cpp is installed."""
    folder.mkdir()
    state = dict(_weights(**sizes))
    config = {
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_act": "silu", "dtype": "float32",
        "num_key_value_heads": sizes["num_attention_heads"], "vocab_size": VOCABULARY, "rms_norm_eps": 1e-5,
        "max_position_embeddings": CONTEXT, "tie_word_embeddings": True, "bos_token_id": 1, "eos_token_id": 2,
    }  # fmt: skip
    (folder / "config.json").write_text(json.dumps(config | sizes))
    tensors = {key: tl.from_numpy(array) for key, array in state.items()}
    safetensors.save(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    if find_spec("llama_cpp"):
        _write_gguf(folder / "model.gguf", state, **sizes)


def _weights(hidden_size: int, intermediate_size: int, num_hidden_layers: int, num_attention_heads: int) -> Any:
    rng = np.random.default_rng(0)

    def matrix(*size: int) -> Any:
        return rng.standard_normal(size, dtype=np.float32) * np.float32(0.02)

    yield "model.embed_tokens.weight", matrix(VOCABULARY, hidden_size)
    yield "model.norm.weight", np.ones(hidden_size, np.float32)
    for i in range(num_hidden_layers):
        layer = f"model.layers.{i}"
        for norm in ("input_layernorm", "post_attention_layernorm"):
            yield f"{layer}.{norm}.weight", np.ones(hidden_size, np.float32)
        for name in "qkvo":
            yield f"{layer}.self_attn.{name}_proj.weight", matrix(hidden_size, hidden_size)
        for name in ("gate", "up"):
            yield f"{layer}.mlp.{name}_proj.weight", matrix(intermediate_size, hidden_size)
        yield f"{layer}.mlp.down_proj.weight", matrix(hidden_size, intermediate_size)


GGUF_NAMES = {
    "model.embed_tokens": "token_embd", "model.norm": "output_norm", "model.layers": "blk",
    "input_layernorm": "attn_norm", "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v", "self_attn.o_proj": "attn_output", "post_attention_layernorm": "ffn_norm",
    "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down",
}  # fmt: skip


def _write_gguf(path: Path, state: dict[str, Any], hidden_size: int, intermediate_size: int, **rest: int) -> None:
    """Write the checkpoint as GGUF. The weights are random, so rotary pairs keep Hugging Face's order."""
    import gguf

    writer = gguf.GGUFWriter(path, "llama")
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(hidden_size)
    writer.add_feed_forward_length(intermediate_size)
    writer.add_block_count(rest["num_hidden_layers"])
    writer.add_head_count(rest["num_attention_heads"])
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_tokenizer_model("llama")
    writer.add_token_list([f"t{i}".encode() for i in range(VOCABULARY)])
    writer.add_token_scores([0.0] * VOCABULARY)
    writer.add_token_types([gguf.TokenType.NORMAL] * VOCABULARY)
    for name, array in state.items():
        for theirs, its in GGUF_NAMES.items():
            name = name.replace(theirs, its)
        writer.add_tensor(name, array)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
