"""Decoding by a GPT-2 of plain modules, as a learner writes it: compared with tallow's own model and with PyTorch.

The cache of the plain model grows by `cat`, or is a buffer of fixed size that `tl.compile` can make one plan of.
Claim: either takes at most 1.3 times as long per token as `tallow.models.GPT2`, natively. A Llama of the same sizes,
whose blocks are single kernels, shows what is left.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import tallow as tl
from bench import turns
from bench.plain_gpt2 import Sizes, plain_gpt2
from bench.report import Row

NAME = "decoding"
SHAPES = {"124M": Sizes(12, 768, 12, 50257, 1024), "small": Sizes(4, 128, 4, 256, 256)}
TOKENS = {"124M": 32, "small": 200}
WORKERS = {
    "GPT2": ("tallow", "built_in"),
    "plain": ("tallow", "grows"),
    "compiled": ("tallow", "compiled"),
    "PyTorch": ("torch", "grows"),
    "fused Llama": ("tallow", "fused"),
}


def measure(options: dict[str, Any]) -> dict[str, Any]:
    rows: list[Row] = []
    for shape in SHAPES:
        with ExitStack() as stack:
            workers = [
                stack.enter_context(turns.worker(library, 1, f"bench.decoding.{function}", library, shape))
                for library, function in WORKERS.values()
            ]
            costs = turns.in_turn(workers, 1, options["repeats"])
        times = {name: 1e3 * cost.best_s / TOKENS[shape] for name, cost in zip(WORKERS, costs, strict=True)}
        ratios = {f"{name} / GPT2": times[name] / times["GPT2"] for name in ("plain", "compiled")}
        rows.append({"shape": shape, **times, **ratios})
    notes = ["ms per token, greedy, from an empty cache; the best turn in processor time", turns.load_note()]
    return {"rows": rows, "notes": notes}


def built_in(library: str, shape: str) -> Callable[[], Any]:
    """Return the work of `tallow.models.GPT2`."""
    from tallow.models import GPT2, GPT2Config

    sizes = SHAPES[shape]
    config = GPT2Config(
        vocab_size=sizes.vocab, n_positions=sizes.length, n_embd=sizes.width, n_layer=sizes.layers, n_head=sizes.heads,
        bos_token_id=0, eos_token_id=(0,),
    )  # fmt: skip
    return _of_generate(GPT2(config), shape)


def fused(library: str, shape: str) -> Callable[[], Any]:
    """Return the work of a Llama with as many parameters in its layers, whose blocks are fused."""
    from tallow.models import Llama, LlamaConfig

    sizes = SHAPES[shape]
    config = LlamaConfig(
        vocab_size=sizes.vocab, hidden_size=sizes.width, intermediate_size=8 * sizes.width // 3,
        num_hidden_layers=sizes.layers, num_attention_heads=sizes.heads, num_key_value_heads=sizes.heads,
        max_position_embeddings=sizes.length, tie_word_embeddings=True,
    )  # fmt: skip
    return _of_generate(Llama(config), shape)


def grows(library: str, shape: str) -> Callable[[], Any]:
    """Return the work of the plain model whose cache grows."""
    lib = importlib.import_module(library)
    model = plain_gpt2(lib, SHAPES[shape], is_fixed=False).eval()
    return lambda: _decode(lib, model, TOKENS[shape])


def compiled(library: str, shape: str) -> Callable[[], Any]:
    """Return the work of the plain model with a cache of fixed size, compiled."""
    model = tl.compile(plain_gpt2(tl, SHAPES[shape], is_fixed=True).eval(), fullgraph=True)
    return lambda: _decode(tl, model, TOKENS[shape])


def _of_generate(model: Any, shape: str) -> Callable[[], Any]:
    from tallow.generation import Sampler, generate

    model.eval()
    greedy = Sampler(temperature=0.0)
    return lambda: [*generate(model, [1], max_tokens=TOKENS[shape], sample=greedy, stop_ids=set())]


def _decode(lib: Any, model: Callable[..., Any], tokens: int) -> list[int]:
    ids = []
    with lib.no_grad():
        token, place, caches = lib.tensor([[1]]), lib.tensor([0]), None
        for _ in range(tokens):
            logits, caches = model(token, place, caches)
            token = logits[:, -1].argmax(-1, keepdim=True)
            place = place + 1
            ids.append(int(token))
    return ids
