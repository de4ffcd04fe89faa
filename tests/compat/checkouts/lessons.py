"""Data for the programs of "Build a Large Language Model (From Scratch)": texts, a tokenizer, small settings."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np

# Stands in for tiktoken, whose vocabularies are downloaded.
TOKENIZER = """
from types import SimpleNamespace
from zlib import crc32


def encode(text, allowed_special=()):
    return [50256 if word == "<|endoftext|>" else crc32(word.encode()) % 50256 for word in text.split()]


def get_encoding(name):
    return SimpleNamespace(encode=encode, decode=lambda ids: " ".join(f"word{i}" for i in ids), n_vocab=50257)
"""
SIZES = "dict(vocab_size=50257, context_length=12, emb_dim=32, n_heads=4, n_layers=2, drop_rate=0.1, qkv_bias=True)"
TRAIN = f"""
from gpt_train import main

main({SIZES}, {{"learning_rate": 5e-4, "num_epochs": 2, "batch_size": 2, "weight_decay": 0.1}})
"""
GENERATE = f"""
import numpy as np
import torch

import gpt_generate

rng, sizes = np.random.RandomState(0), {SIZES}
norm = lambda: {{"g": 1 + normal(32), "b": normal(32)}}
normal = lambda *shape: 0.1 * rng.standard_normal(shape).astype("float32")
linear = lambda i, o: {{"w": normal(i, o), "b": normal(o)}}
block = lambda: {{
    "attn": {{"c_attn": linear(32, 96), "c_proj": linear(32, 32)}},
    "mlp": {{"c_fc": linear(32, 128), "c_proj": linear(128, 32)}},
    "ln_1": norm(),
    "ln_2": norm(),
}}
weights = {{"wpe": normal(12, 32), "wte": normal(50257, 32), "blocks": [block(), block()], **norm()}}
gpt_generate.download_and_load_gpt2 = lambda model_size, models_dir: ({{}}, weights)
gpt_generate.main(sizes, "Every effort moves you", "124M", torch.device("cpu"))
"""
VARIANTS = f"""
import torch

from llms_from_scratch import ch04, llama3, qwen3
from llms_from_scratch.kv_cache import llama3 as llama3_kv, qwen3 as qwen3_kv
from llms_from_scratch.kv_cache.generate import generate_text_simple as generate_cached
from llms_from_scratch.kv_cache_batched import qwen3 as qwen3_batched
from llms_from_scratch.kv_cache_batched.generate import generate_text_simple as generate_batched

gpt = {SIZES} | {{"context_length": 32}}
common = dict(vocab_size=257, context_length=32, emb_dim=32, n_heads=4, n_layers=2, hidden_dim=64, n_kv_groups=2)
freq = dict(factor=32.0, low_freq_factor=1.0, high_freq_factor=4.0, original_context_length=32)
llama = common | dict(rope_base=500_000.0, rope_freq=freq, dtype=torch.float32)
qwen = common | dict(head_dim=8, qk_norm=True, rope_base=1e6, dtype=torch.float32, num_experts=0)
experts = qwen | dict(num_experts=4, num_experts_per_tok=2, moe_intermediate_size=64)
ids = torch.tensor([[3, 141, 59, 26]])
for model, sizes, generate in [
    (ch04.GPTModel, gpt, ch04.generate_text_simple),
    (ch04.GPTModelFast, gpt, ch04.generate_text_simple),
    (llama3.Llama3Model, llama, ch04.generate_text_simple),
    (llama3_kv.Llama3Model, llama, generate_cached),
    (qwen3.Qwen3Model, qwen, ch04.generate_text_simple),
    (qwen3.Qwen3Model, experts, ch04.generate_text_simple),
    (qwen3_kv.Qwen3Model, qwen, generate_cached),
    (qwen3_batched.Qwen3Model, qwen, generate_batched),
]:
    made = model(sizes).eval()
    print(model.__module__, generate(made, ids, 8, 32).tolist())
    if generate is ch04.generate_text_simple:
        loss = torch.nn.functional.cross_entropy(made(ids)[0], ids[0])
        loss.backward()
        grads = [float(p.grad.square().sum()) for p in made.parameters() if p.grad is not None]
        print(float(loss), grads)
"""


def lesson(program: str = "", more: Callable[[Path], None] | None = None) -> Callable[[Path], None]:
    """Return a function that writes a tokenizer, what stands in for TensorFlow, a text, and a small program."""

    def write(folder: Path) -> None:
        (folder / "tiktoken").mkdir()
        (folder / "tiktoken" / "__init__.py").write_text(TOKENIZER, encoding="utf-8")
        (folder / "tiktoken" / "load.py").write_text("load_tiktoken_bpe = None", encoding="utf-8")
        (folder / "tensorflow.py").write_text("", encoding="utf-8")
        text = " ".join(f"word{i}" for i in np.random.RandomState(0).randint(0, 90, 400))
        if not (folder / "the-verdict.txt").exists():
            (folder / "the-verdict.txt").write_text(text, encoding="utf-8")
        (folder / "small.py").write_text(program, encoding="utf-8")
        if more:
            more(folder)

    return write


def cells(notebook: str) -> Callable[[Path], None]:
    """Return a function that writes a notebook's cells as a program.

    Left out are cells that show an error, and lines about versions.
    """

    def write(folder: Path) -> None:
        found = json.loads((folder / notebook).read_text(encoding="utf-8"))["cells"]
        code = [cell for cell in found if cell["cell_type"] == "code"]
        code = [cell for cell in code if all(output["output_type"] != "error" for output in cell["outputs"])]
        lines = "\n".join("".join(cell["source"]) for cell in code).splitlines()
        lesson("\n".join(line for line in lines if "version" not in line))(folder)

    return write


def messages(folder: Path) -> None:
    """Write 80 messages of two kinds."""
    rng = np.random.RandomState(0)
    rows = [f"{('ham', 'spam')[i % 2]}\t" + " ".join(f"word{j}" for j in rng.randint(0, 50, 9)) for i in range(80)]
    (folder / "sms_spam_collection").mkdir()
    (folder / "sms_spam_collection" / "SMSSpamCollection.tsv").write_text("\n".join(rows) + "\n", encoding="utf-8")
