"""embedding, embedding_bag, one_hot."""

from __future__ import annotations

from cases import case, functional, integers, normal

case("embedding", functional("embedding"), integers(2, 5, high=4), normal(4, 3))
case("embedding", functional("embedding", sparse=False), integers(0), normal(4, 3))
case("embedding", lambda m, i, w: m.nn.functional.embedding(i.sum(), w), integers(2, high=2), normal(4, 9))
case("embedding", lambda m, i, w: m.nn.functional.embedding(i.int(), w), integers(2, 3, high=2), normal(4, 9))
# max_norm writes into weight, so weight must not be a leaf that requires grad
case(
    "embedding",
    lambda m, i, w: m.nn.functional.embedding(i, w.detach().clone(), max_norm=1.0),
    integers(2, 5, high=4),
    normal(4, 3),
    grad=False,
)
case(
    "embedding",
    lambda m, i, w: m.nn.functional.embedding(i, w.detach().clone(), max_norm=1.5, norm_type=1.0),
    integers(3, high=4),
    normal(4, 3),
    grad=False,
)
