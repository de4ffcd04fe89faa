"""scaled_dot_product_attention."""

from __future__ import annotations

from cases import booleans, case, functional, normal

NAME = "scaled_dot_product_attention"
q, k, v = normal(2, 4, 5, 3), normal(2, 4, 6, 3), normal(2, 4, 6, 7)
g = normal(2, 2, 6, 3), normal(2, 2, 6, 7)  # grouped keys and values
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
case(NAME, functional(NAME), q, k, v, normal(2, 1, 5, 1))
case(NAME, functional(NAME), q, k, v, mask & (mask.sum(1, keepdims=True) > 3))  # queries that see nothing
case(NAME, functional(NAME, enable_gqa=True), q, *g)
case(NAME, functional(NAME, enable_gqa=True, is_causal=True), q, *g)
case(NAME, functional(NAME, enable_gqa=True), q, *g, mask)
case(NAME, functional(NAME), q[:, :1], k, v)  # broadcast heads
case(NAME, functional(NAME), q[:, :, :1], k, v)  # one query
case(NAME, functional(NAME), q[:, :, :1], k, normal(*k.shape))
case(NAME, functional(NAME, enable_gqa=True), q[:, :, :1], g[0], normal(*g[0].shape))
case(NAME, functional(NAME, is_causal=True), q[:, :, :1], k, normal(*k.shape))
case(NAME, lambda m, *x: functional(NAME)(m, *(a.transpose(0, 1) for a in x)), q, k, v)
