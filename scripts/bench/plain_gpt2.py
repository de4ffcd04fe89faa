"""GPT-2 in plain modules of PyTorch's API, with a cache, as a learner writes it."""

from __future__ import annotations

from typing import Any, NamedTuple


class Sizes(NamedTuple):
    layers: int
    width: int
    heads: int
    vocab: int
    length: int


def plain_gpt2(torch: Any, sizes: Sizes, *, is_fixed: bool) -> Any:
    """Return the model: a function of token ids (1, T), their places (T,) and caches, to logits and caches.

    Args:
        torch: the library, `torch` or `tallow`.
        is_fixed: keep keys and values in buffers of the full length, in place of caches that grow.
    """
    nn = torch.nn
    F = nn.functional
    D, H, N = sizes.width, sizes.heads, sizes.length

    class Attention(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.c_attn, self.c_proj = nn.Linear(D, 3 * D), nn.Linear(D, D)
            if is_fixed:
                self.register_buffer("keys", torch.zeros(1, H, N, D // H), persistent=False)
                self.register_buffer("values", torch.zeros(1, H, N, D // H), persistent=False)

        def forward(self, x: Any, place: Any, cache: Any, mask: Any) -> Any:
            B, T, _ = x.shape
            q, k, v = (part.view(B, T, H, D // H).transpose(1, 2) for part in self.c_attn(x).split(D, dim=2))
            if is_fixed:
                self.keys[:, :, place] = k
                self.values[:, :, place] = v
                y = F.scaled_dot_product_attention(q, self.keys, self.values, attn_mask=mask)
            else:
                if cache is not None:
                    k, v = torch.cat([cache[0], k], dim=2), torch.cat([cache[1], v], dim=2)
                y = F.scaled_dot_product_attention(q, k, v, is_causal=cache is None)
                cache = k, v
            return self.c_proj(y.transpose(1, 2).contiguous().view(B, T, D)), cache

    class MLP(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.c_fc, self.gelu, self.c_proj = nn.Linear(D, 4 * D), nn.GELU(approximate="tanh"), nn.Linear(4 * D, D)

        def forward(self, x: Any) -> Any:
            return self.c_proj(self.gelu(self.c_fc(x)))

    class Block(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.ln_1, self.attn, self.ln_2, self.mlp = nn.LayerNorm(D), Attention(), nn.LayerNorm(D), MLP()

        def forward(self, x: Any, place: Any, cache: Any, mask: Any) -> Any:
            y, cache = self.attn(self.ln_1(x), place, cache, mask)
            x = x + y
            return x + self.mlp(self.ln_2(x)), cache

    class GPT(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.wte, self.wpe = nn.Embedding(sizes.vocab, D), nn.Embedding(N, D)
            self.h = nn.ModuleList([Block() for _ in range(sizes.layers)])
            self.ln_f, self.lm_head = nn.LayerNorm(D), nn.Linear(D, sizes.vocab, bias=False)
            self.wte.weight = self.lm_head.weight
            if is_fixed:
                self.register_buffer("allowed", torch.ones(N, N, dtype=torch.bool).tril(), persistent=False)

        def forward(self, ids: Any, place: Any, caches: Any = None) -> Any:
            x = self.wte(ids) + self.wpe(place)
            mask = self.allowed[None, None, place] if is_fixed else None
            new = []
            for i, block in enumerate(self.h):
                x, cache = block(x, place, None if caches is None else caches[i], mask)
                new.append(cache)
            return self.lm_head(self.ln_f(x)[:, [-1], :]), new

    return GPT()
