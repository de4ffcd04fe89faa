"""scaled_dot_product_attention."""

from __future__ import annotations

from typing import Any

import numpy as np

from cases import booleans, case, functional, normal

NAME = "scaled_dot_product_attention"
q, k, v = normal(2, 4, 5, 3), normal(2, 4, 6, 3), normal(2, 4, 6, 7)
g = normal(2, 2, 6, 3), normal(2, 2, 6, 7)  # grouped-query attention: fewer heads of keys and values
mask = booleans(5, 6)
mask[:, 0] = True


case(NAME, functional(NAME), q, k, v)
case(NAME, functional(NAME, scale=0.3), q[0], k[0], v[0])
case(NAME, functional(NAME), q[0, 0], k[0, 0], v[0, 0])
case(NAME, functional(NAME, is_causal=True), q, k, v)
case(NAME, functional(NAME, is_causal=True), q, k[:, :, :3], v[:, :, :3])
case(NAME, functional(NAME), q, k, v, mask)
case(NAME, functional(NAME), q, k, v, normal(5, 6))
case(NAME, functional(NAME), q, k, v, normal(4, 1, 6))
# Softmax is invariant to a constant added to a whole row: the gradient is 0, up to the rounding of six terms.
case(NAME, functional(NAME), q, k, v, normal(2, 1, 5, 1), atol=3e-6)
case(NAME, functional(NAME), q, k, v, mask & (mask.sum(1, keepdims=True) > 3))  # rows that are fully masked
case(NAME, functional(NAME, enable_gqa=True), q, *g)
case(NAME, functional(NAME, enable_gqa=True, is_causal=True), q, *g)
case(NAME, functional(NAME, enable_gqa=True), q, *g, mask)
case(NAME, functional(NAME), q[:, :1], k, v)  # heads are broadcast
case(NAME, functional(NAME), q[:, :, :1], k, v)  # a single query
case(NAME, functional(NAME), q[:, :, :1], k, normal(*k.shape))
case(NAME, functional(NAME, enable_gqa=True), q[:, :, :1], g[0], normal(*g[0].shape))
case(NAME, functional(NAME, is_causal=True), q[:, :, :1], k, normal(*k.shape))
# A single query, and a mask that hides the last keys, as in a cache of fixed size.
held = np.arange(6) < 4
case(NAME, functional(NAME), q[:, :, :1], k, normal(*k.shape), held[None])
case(NAME, functional(NAME), q[:, :, :1], k, v, np.where(held, normal(1, 6), -np.inf))
case(NAME, functional(NAME), q[:, :, :1], k, v, (held & mask[1])[None, None, None])
case(NAME, functional(NAME, enable_gqa=True), q[:, :, :1], g[0], normal(*g[0].shape), held[None])
case(NAME, lambda m, *x: functional(NAME)(m, *(a.transpose(0, 1) for a in x)), q, k, v)

MHA = "multi_head_attention_forward"
L, S, N, D, H = 4, 5, 2, 6, 3
sequence, source = normal(L, N, D), normal(S, N, D)
in_weight, in_bias, out_weight, out_bias = (0.4 * normal(*n) for n in ((3 * D, D), (3 * D,), (D, D), (D,)))
late = np.triu(np.ones((L, L), bool), 1)  # causal mask
padding = np.array([[False] * S, [False, False, True, True, False]])


def mha(m: Any, query: Any, key: Any, value: Any, weights: Any, masks: dict[str, Any], **options: Any) -> Any:
    w, b, out_w, out_b = weights
    settings = {"bias_k": None, "bias_v": None, "add_zero_attn": False, "dropout_p": 0.0} | options
    return m.nn.functional.multi_head_attention_forward(
        query, key, value, D, H, w, b, out_proj_weight=out_w, out_proj_bias=out_b, **settings, **masks
    )


def self_attention(**options: Any) -> Any:
    return lambda m, x, *weights: mha(m, x, x, x, weights, {}, **options)


def with_masks(**options: Any) -> Any:
    def call(m: Any, q: Any, k: Any, w: Any, b: Any, ow: Any, ob: Any, *masks: Any) -> Any:
        names = [name for name in ("attn_mask", "key_padding_mask") if name in options]
        settings = {key: value for key, value in options.items() if key not in names}
        return mha(m, q, k, k, (w, b, ow, ob), dict(zip(names, masks, strict=True)), **settings)

    return call


def mha_case(call: Any, *inputs: Any) -> None:
    case(MHA, call, *inputs, rtol=1e-4, atol=1e-5)  # rounding of five products in sequence


WEIGHTS = in_weight, in_bias, out_weight, out_bias
mha_case(self_attention(), sequence, *WEIGHTS)
mha_case(self_attention(need_weights=False), sequence, *WEIGHTS)
mha_case(self_attention(average_attn_weights=False, add_zero_attn=True), sequence[:, 0], *WEIGHTS)
mha_case(self_attention(need_weights=False), sequence[:, 0], *WEIGHTS)
for need_weights in (True, False):
    options = {"need_weights": need_weights}
    mha_case(with_masks(**options), sequence, source, *WEIGHTS)
    mha_case(with_masks(attn_mask=1, **options), sequence, sequence, *WEIGHTS, late)
    mha_case(with_masks(attn_mask=1, is_causal=True, **options), sequence, sequence, *WEIGHTS, late)
    mha_case(with_masks(attn_mask=1, **options), sequence, source, *WEIGHTS, normal(N * H, L, S))
    mha_case(with_masks(key_padding_mask=1, **options), sequence, source, *WEIGHTS, padding)
    mha_case(with_masks(attn_mask=1, key_padding_mask=1, **options), sequence, sequence, *WEIGHTS, late, padding[:, :L])
    mha_case(
        with_masks(attn_mask=1, key_padding_mask=1, add_zero_attn=True, **options),
        sequence,
        source,
        *WEIGHTS,
        normal(L, S),
        normal(N, S),
    )
    mha_case(
        lambda m, q, k, w, b, ow, ob, bk, bv, need=need_weights: mha(
            m, q, k, k, (w, b, ow, ob), {}, bias_k=bk, bias_v=bv, need_weights=need
        ),
        *(sequence, source, *WEIGHTS, normal(1, 1, D), normal(1, 1, D)),
    )
mha_case(
    lambda m, q, k, v, wq, wk, wv, b, ow: mha(
        m,
        q,
        k,
        v,
        (None, b, ow, None),
        {},
        use_separate_proj_weight=True,
        q_proj_weight=wq,
        k_proj_weight=wk,
        v_proj_weight=wv,
    ),
    *(sequence, normal(S, N, 4), normal(S, N, 7), normal(D, D), normal(D, 4), normal(D, 7), in_bias, out_weight),
)
mha_case(
    lambda m, q, k, w, b, ow, ob, sk, sv: mha(m, q, k, k, (w, b, ow, ob), {}, static_k=sk, static_v=sv),
    *(sequence, source, *WEIGHTS, normal(N * H, 7, D // H), normal(N * H, 7, D // H)),
)
