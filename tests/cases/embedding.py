"""embedding, embedding_bag, one_hot."""

from __future__ import annotations

from typing import Any

import numpy as np

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

BAG = "embedding_bag"
words, table = np.array([3, 1, 1, 0, 2, 3, 0, 1]), normal(4, 3)
starts = np.array([0, 2, 2, 5])


def bag(**options: Any) -> Any:
    return lambda m, i, w, *offsets: m.nn.functional.embedding_bag(i, w, *offsets, **options)


def weighted_bag(m: Any, i: Any, w: Any, s: Any, o: Any, **options: Any) -> Any:
    return m.nn.functional.embedding_bag(i, w, o, mode="sum", per_sample_weights=s, **options)


for mode in ("sum", "mean", "max"):
    case(BAG, bag(mode=mode), integers(3, 5, high=4), table)
    case(BAG, bag(mode=mode), words, table, starts)
    case(BAG, bag(mode=mode, include_last_offset=True), words, table, np.array([0, 2, 8]))
case(BAG, bag(), words, table, starts)
case(BAG, weighted_bag, words, table, normal(8), starts)
case(BAG, lambda m, i, w, s: weighted_bag(m, i, w, s, None), words.reshape(2, 4), table, normal(2, 4))
for mode in ("sum", "mean", "max"):
    case(BAG, bag(mode=mode, padding_idx=1), words, table, starts, grad=False)
case("one_hot", functional("one_hot"), words.reshape(2, 4), grad=False)
case("one_hot", functional("one_hot", num_classes=6), words, grad=False)
case("one_hot", lambda m, i: m.nn.functional.one_hot(i[0]), words, grad=False)
case("one_hot", functional("one_hot", num_classes=2), integers(0), grad=False)
