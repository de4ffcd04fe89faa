"""The workloads of `bench.py --gpu`, written against PyTorch's API for both `torch` and `tallow`.

Every function takes the library, the device and the sizes, and returns `Work`: a step, and what it moves or computes.
The values do not matter, so they are constants, which need no random numbers from the host.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from bench.workloads import transformer_block


class Work(NamedTuple):
    """`step` runs the work once. The others are lower bounds of one step: bytes moved, operations, and tokens read."""

    step: Callable[[], Any]
    bytes: int = 0
    flops: int = 0
    tokens: int = 0


@dataclass(frozen=True)
class Sizes:
    """The sizes that the goals name."""

    matrix: int = 8192
    rows: int = 16384
    width: int = 8192
    vocabulary: int = 32000
    parameters: int = 2**27
    attention: tuple[int, int, int, int] = (4, 32, 4096, 128)  # B, H, T, K
    llama: tuple[int, int, int, int, int] = (32000, 4096, 11008, 32, 32)  # V, D, F, layers, H
    context: int = 128
    gpt: tuple[int, int, int, int] = (50257, 768, 12, 12)  # V, D, layers, H
    batch: tuple[int, int] = (16, 1024)  # B, T


TINY = Sizes(
    matrix=8,
    rows=4,
    width=8,
    vocabulary=16,
    parameters=32,
    attention=(1, 2, 8, 4),
    llama=(16, 32, 32, 1, 2),
    context=4,
    gpt=(16, 8, 1, 2),
    batch=(2, 4),
)


def copy(lib: Any, device: str, sizes: Sizes) -> Work:
    x = lib.full((2 * sizes.parameters,), 1.0, device=device)
    y = lib.empty_like(x)
    return Work(lambda: y.copy_(x), bytes=2 * x.nbytes)


def matmul(lib: Any, device: str, sizes: Sizes) -> Work:
    n = sizes.matrix
    a, b = (lib.full((n, n), value, device=device, dtype=lib.bfloat16) for value in (0.5, 0.25))
    return Work(lambda: a @ b, flops=2 * n**3)


def rms_norm(lib: Any, device: str, sizes: Sizes) -> Work:
    x, weight = _rows(lib, device, sizes)
    return _forward(lib, lambda: lib.nn.functional.rms_norm(x, (sizes.width,), weight, 1e-5), 2 * x.nbytes)


def layer_norm(lib: Any, device: str, sizes: Sizes) -> Work:
    x, weight = _rows(lib, device, sizes)
    return _forward(lib, lambda: lib.nn.functional.layer_norm(x, (sizes.width,), weight, weight), 2 * x.nbytes)


def softmax(lib: Any, device: str, sizes: Sizes) -> Work:
    x, _ = _rows(lib, device, sizes)
    return _forward(lib, lambda: lib.nn.functional.softmax(x, dim=-1), 2 * x.nbytes)


def cross_entropy(lib: Any, device: str, sizes: Sizes) -> Work:
    """Forward and backward: read the logits twice and write their gradient."""
    logits = lib.full((sizes.rows // 2, sizes.vocabulary), 0.5, device=device, dtype=lib.bfloat16).requires_grad_()
    target = lib.zeros(sizes.rows // 2, device=device, dtype=lib.int64)

    def step() -> None:
        logits.grad = None
        lib.nn.functional.cross_entropy(logits, target).backward()

    return Work(step, bytes=3 * logits.nbytes)


def adamw(lib: Any, device: str, sizes: Sizes) -> Work:
    """Read the parameter, the gradient and both moments; write all but the gradient."""
    parameters = [lib.full((sizes.parameters // 16,), 1.0, device=device).requires_grad_() for _ in range(16)]
    for each in parameters:
        each.grad = lib.full(each.shape, 0.5, device=device)
    optimizer = lib.optim.AdamW(parameters, fused=True)
    return Work(optimizer.step, bytes=7 * sum(each.nbytes for each in parameters))


def attention(lib: Any, device: str, sizes: Sizes) -> Work:
    q, k, v = _heads(lib, device, sizes)
    B, H, T, K = sizes.attention
    step = _forward(lib, lambda: lib.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True), 0).step
    return Work(step, flops=2 * B * H * T * T * K)


def attention_backward(lib: Any, device: str, sizes: Sizes) -> Work:
    """Forward and backward together: neither library can measure the backward pass alone."""
    q, k, v = (each.requires_grad_() for each in _heads(lib, device, sizes))
    gradient = lib.full(q.shape, 0.1, device=device, dtype=q.dtype)
    B, H, T, K = sizes.attention

    def step() -> None:
        q.grad = k.grad = v.grad = None
        lib.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True).backward(gradient)

    return Work(step, flops=7 * B * H * T * T * K)


def decode(lib: Any, device: str, sizes: Sizes) -> Work:
    """Decode one token of tallow's Llama after `context` others."""
    return _decode(_llama(lib, device, sizes), sizes)


def decode_int4(lib: Any, device: str, sizes: Sizes) -> Work:
    """Decode with int4 weights."""
    from tallow.nn.quantization import Int4WeightOnlyConfig, quantize_

    model = _llama(lib, device, sizes)
    quantize_(model, Int4WeightOnlyConfig())
    return _decode(model, sizes)


def _llama(lib: Any, device: str, sizes: Sizes) -> Any:
    from tallow.models.decoders.llama import Llama, LlamaConfig

    V, D, F, layers, H = sizes.llama
    config = LlamaConfig(
        vocab_size=V,
        hidden_size=D,
        intermediate_size=F,
        num_hidden_layers=layers,
        num_attention_heads=H,
        num_key_value_heads=H,
    )
    shapes = {name: each.shape for name, each in Llama(config, device="meta").state_dict().items()}
    state = {name: lib.full(shape, 0.01, device=device, dtype=lib.bfloat16) for name, shape in shapes.items()}
    return Llama.assemble(config, state, device=device)


def _decode(model: Any, sizes: Sizes) -> Work:
    cache = model.new_cache(length=sizes.context + 1)
    model.last_logits([[1] * sizes.context], cache)

    def step() -> None:
        model.next_logits([1], cache)
        cache.truncate(sizes.context)

    # A token reads all weights once, and one row of the embedding.
    read = {name: each.nbytes for name, each in model.state_dict().items() if "embed_tokens" not in name}
    return Work(step, bytes=sum(read.values()), tokens=1)


def decode_transformers(lib: Any, device: str, sizes: Sizes) -> Work:
    """Decode with transformers, in eager mode."""
    from transformers import DynamicCache, LlamaConfig, LlamaForCausalLM

    V, D, F, layers, H = sizes.llama
    config = LlamaConfig(
        vocab_size=V, hidden_size=D, intermediate_size=F, num_hidden_layers=layers, num_attention_heads=H
    )
    with lib.device("meta"):
        model = LlamaForCausalLM(config).to(lib.bfloat16).eval()
    model = model.to_empty(device=device)
    with lib.no_grad():
        for each in (*model.parameters(), *model.buffers()):
            each.fill_(0.01)
    cache, token = DynamicCache(), lib.ones(1, 1, dtype=lib.int64, device=device)
    with lib.no_grad():
        model(token.expand(1, sizes.context), past_key_values=cache)

    def step() -> None:
        with lib.no_grad():
            model(token, past_key_values=cache).logits[0, -1].cpu()
        cache.crop(-1)

    return Work(step, tokens=1)


def training(lib: Any, device: str, sizes: Sizes) -> Work:
    """Train a GPT for one step with AdamW, in bfloat16 by autocast."""
    nn, F = lib.nn, lib.nn.functional
    V, D, layers, H = sizes.gpt
    B, T = sizes.batch

    class Gpt(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.tokens, self.positions = nn.Embedding(V, D), nn.Embedding(T, D)
            self.blocks = nn.Sequential(*(transformer_block(lib, D, H) for _ in range(layers)))
            self.norm = nn.LayerNorm(D)

        def forward(self, tokens: Any) -> Any:
            x = self.blocks(self.tokens(tokens) + self.positions(lib.arange(T, device=device)))
            return F.linear(self.norm(x), self.tokens.weight)

    model = Gpt().to(device)
    optimizer = lib.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    tokens = lib.arange(B * T, device=device).reshape(B, T) % V

    def step() -> None:
        optimizer.zero_grad()
        with lib.autocast(device.partition(":")[0], dtype=lib.bfloat16):
            loss = F.cross_entropy(model(tokens).view(B * T, V), tokens.view(B * T))
        loss.backward()
        optimizer.step()

    return Work(step, tokens=B * T)


def _rows(lib: Any, device: str, sizes: Sizes) -> tuple[Any, Any]:
    x = lib.full((sizes.rows, sizes.width), 0.5, device=device, dtype=lib.bfloat16)
    return x, lib.full((sizes.width,), 1.0, device=device, dtype=lib.bfloat16)


def _heads(lib: Any, device: str, sizes: Sizes) -> list[Any]:
    return [lib.full(sizes.attention, value, device=device, dtype=lib.bfloat16) for value in (0.1, 0.2, 0.3)]


def _forward(lib: Any, fn: Callable[[], Any], moved: int) -> Work:
    def step() -> None:
        with lib.no_grad():
            fn()

    return Work(step, bytes=moved)
