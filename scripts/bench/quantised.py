"""Decoding and prefill of Llamas whose weights stay quantised, greedy: tallow and llama.cpp on the same GGUF files.

The weights are random: a few rows, repeated, as only their number and format matter here. llama.cpp needs
llama-cpp-python.

Claims, natively, on one thread, of llama.cpp's speed with the same file: 1.1 for stories15M's shape, 1.05 for
stories110M's, 1.0 for TinyLlama's 1.1 billion weights and 0.8 for its prompts of 512 tokens; 1.5 for 4 to 16 texts of
stories15M's shape at once.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from importlib.util import find_spec
from typing import Any

import numpy as np

import tallow as tl
from bench import turns
from bench.generate import SHAPES, VOCABULARY
from bench.report import Row
from tallow.io import gguf
from tallow.kernels.quantized.block_matrix import BlockMatrix
from tallow.kernels.quantized.gguf_blocks import FORMATS
from tallow.models.gguf.recipes import Layers, formats_of, recipe_of

NAME = "quantised"
LIBRARIES = {"tallow": "tallow", "llama_cpp": "llama_cpp"}
TINY_LLAMA = {"hidden_size": 2048, "intermediate_size": 5632, "num_hidden_layers": 22, "num_attention_heads": 32}
SIZES = {**SHAPES, "TinyLlama 1.1B": TINY_LLAMA | {"num_key_value_heads": 4}}
CONTEXT, TOKENS, ROWS = 1024, 24, 64
# The tokens without which wllama refuses a file: the special ones, and one for each byte.
SPECIAL, BYTES = ["<unk>", "<s>", "</s>"], [f"<0x{byte:02X}>" for byte in range(256)]
# The shape, the type of the file, and cases of (texts, tokens of a prompt, tokens generated).
DECODE, TOGETHER = (1, 1, TOKENS), [(texts, 1, TOKENS) for texts in (4, 8, 16)]
CASES: list[tuple[str, str, list[tuple[int, int, int]]]] = [
    ("stories15M", "F32", [DECODE, *TOGETHER]),
    ("stories15M", "Q8_0", [DECODE, *TOGETHER, (1, 256, 1)]),
    ("stories15M", "Q4_0", [DECODE, (1, 256, 1)]),
    ("stories110M", "Q4_0", [DECODE, (1, 256, 1)]),
    ("stories110M", "Q4_K_M", [DECODE, (1, 256, 1)]),
    ("TinyLlama 1.1B", "Q4_K_M", [DECODE, (1, 512, 1)]),
]
Work = Callable[[int, int, int], Any]


def measure(options: dict[str, Any]) -> dict[str, Any]:
    libraries = {name: module for name, module in LIBRARIES.items() if find_spec(module)}
    rows: list[Row] = []
    for shape, file_type, cases in CASES:
        write_file("model.gguf", file_type, **SIZES[shape])
        with ExitStack() as stack:
            workers = [
                stack.enter_context(turns.worker(module, 1, f"bench.quantised.{name}", "model.gguf"))
                for name, module in libraries.items()
            ]
            repeats = options["repeats"] if shape in SHAPES else 1
            for texts, prompt, tokens in cases:
                costs = turns.in_turn(workers, 1, repeats, texts, prompt, tokens)
                rates = [texts * max(prompt, tokens) / cost.best_s for cost in costs]
                what = f"prompt of {prompt}" if prompt > 1 else f"{texts} texts" if texts > 1 else "decode"
                rows.append({"shape": shape, "type": file_type, "what": what} | turns.comparison(libraries, rates))
    notes = [
        f"tokens per second of all texts; {TOKENS} tokens after one, or a prompt at once and one token more",
        "the best turn, in processor time, on one thread",
        turns.load_note(),
    ]
    return {"rows": rows, "notes": notes}


# ------------------------------------------------------------------------------------------------------ in the workers


def tallow(path: str) -> Work:
    from tallow.generation import Sampler, generate, generate_batch
    from tallow.models import AutoModel

    model, greedy = AutoModel.from_pretrained(path), Sampler(temperature=0.0)

    def work(texts: int, prompt: int, tokens: int) -> Any:
        if texts == 1:
            return [*generate(model, [1] * prompt, max_tokens=tokens, sample=greedy)]
        return [*generate_batch(model, [[1] * prompt] * texts, max_tokens=tokens, sample=greedy)]

    return work


def llama_cpp(path: str) -> Work:
    """Call the C interface: the Python class decodes one text at a time."""
    import llama_cpp as library

    silent = library.llama_log_callback(lambda *_: None)
    library.llama_log_set(silent, None)
    library.llama_backend_init()
    model = library.llama_model_load_from_file(path.encode(), library.llama_model_default_params())
    parameters = library.llama_context_default_params()
    parameters.n_ctx, parameters.n_seq_max, parameters.kv_unified = CONTEXT, 16, True
    parameters.n_batch = parameters.n_ubatch = 512
    parameters.n_threads = parameters.n_threads_batch = 1
    context = library.llama_init_from_model(model, parameters)
    batch = library.llama_batch_init(512, 0, 1)

    def read(rows: list[tuple[int, int, int]], wanted: list[int]) -> list[int]:
        """Append rows of (token, position, text); return the most likely tokens after the rows `wanted`."""
        batch.n_tokens = len(rows)
        for i, (token, position, text) in enumerate(rows):
            batch.token[i], batch.pos[i], batch.n_seq_id[i] = token, position, 1
            batch.seq_id[i][0], batch.logits[i] = text, i in wanted
        if library.llama_decode(context, batch):
            raise RuntimeError("llama.cpp could not decode")
        logits = (library.llama_get_logits_ith(context, i) for i in wanted)
        return [int(np.ctypeslib.as_array(each, (VOCABULARY,)).argmax()) for each in logits]

    def work(texts: int, prompt: int, tokens: int, kept: Any = silent) -> Any:  # ctypes does not keep the callback
        library.llama_memory_clear(library.llama_get_memory(context), False)
        rows = [(1, position, text) for text in range(texts) for position in range(prompt)]
        chosen = read(rows, [prompt * (text + 1) - 1 for text in range(texts)])
        for position in range(prompt, prompt + tokens - 1):
            chosen = read([(token, position, text) for text, token in enumerate(chosen)], list(range(texts)))
        return chosen

    return work


# ----------------------------------------------------------------------------------------------------------- the files


def write_file(
    path: str,
    file_type: str,
    *,
    hidden_size: int,
    intermediate_size: int,
    num_hidden_layers: int,
    num_attention_heads: int,
    num_key_value_heads: int | None = None,
) -> None:
    """Write a Llama with the types of tensors that llama.cpp gives such a file."""
    kv_heads = num_key_value_heads or num_attention_heads
    kv_width = hidden_size // num_attention_heads * kv_heads
    layer = {"attn_q": (hidden_size, hidden_size), "attn_k": (kv_width, hidden_size), "attn_v": (kv_width, hidden_size)}
    layer |= {"attn_output": (hidden_size, hidden_size), "ffn_down": (hidden_size, intermediate_size)}
    layer |= dict.fromkeys(("ffn_gate", "ffn_up"), (intermediate_size, hidden_size))
    shapes: dict[str, tuple[int, ...]] = {"token_embd.weight": (VOCABULARY, hidden_size)}
    shapes["output_norm.weight"] = (hidden_size,)
    for i in range(num_hidden_layers):
        shapes |= {f"blk.{i}.{name}.weight": shape for name, shape in layer.items()}
        shapes |= {f"blk.{i}.{name}_norm.weight": (hidden_size,) for name in ("attn", "ffn")}
    recipe = recipe_of(file_type)
    formats = formats_of(recipe, shapes, Layers(num_hidden_layers, num_attention_heads // kv_heads))
    tensors = {name: _random(shape, formats[name]) for name, shape in shapes.items()}
    gguf.save(tensors, path, {
        "general.architecture": "llama", "general.file_type": recipe.number, "llama.context_length": CONTEXT,
        "llama.embedding_length": hidden_size, "llama.feed_forward_length": intermediate_size,
        "llama.block_count": num_hidden_layers, "llama.attention.head_count": num_attention_heads,
        "llama.attention.head_count_kv": kv_heads, "llama.attention.layer_norm_rms_epsilon": 1e-5,
        "tokenizer.ggml.model": "llama",
        "tokenizer.ggml.tokens": [*SPECIAL, *(f"t{i}" for i in range(VOCABULARY - 259)), *BYTES],
        "tokenizer.ggml.scores": np.zeros(VOCABULARY, np.float32),
        "tokenizer.ggml.token_type": np.repeat([2, 3, 1, 6], [1, 2, VOCABULARY - 259, 256]).astype(np.int32),
        "tokenizer.ggml.bos_token_id": 1, "tokenizer.ggml.eos_token_id": 2,
    })  # fmt: skip


def _random(shape: tuple[int, ...], format: str) -> tl.Tensor | BlockMatrix:
    if len(shape) == 1:
        return tl.ones(*shape)
    rows = np.random.default_rng(0).standard_normal((ROWS, shape[1]), dtype=np.float32) * np.float32(0.02)
    if format not in FORMATS:
        return tl.from_numpy(np.resize(rows, shape))
    blocks = BlockMatrix.quantized(rows, format).blocks
    return BlockMatrix(np.resize(blocks, (shape[0], blocks.shape[1])), format)
