"""Buckets of distances between positions, for biases of attention that depend on the distance alone.

Letters: T query positions, S key positions, H heads.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from tallow import devices
from tallow.core.creation import arange, from_numpy
from tallow.core.tensor import Tensor, wrap
from tallow.nn.embedding import Embedding
from tallow.tape.modes import is_exporting


def buckets(
    distances: npt.NDArray[np.int64], *, bidirectional: bool, count: int, longest: int
) -> npt.NDArray[np.int64]:
    """Return the bucket of the bias for each distance from a query to a key.

    Half of the buckets have one distance each; the others are ranges, wider in proportion to the distance, up to
    `longest`. A decoder sees no later keys; in an encoder half of the buckets are for them.

    Source:  Raffel et al. 2020, arXiv:1910.10683, section 2.1
    """
    after = np.zeros_like(distances)
    if bidirectional:
        count //= 2
        after[distances > 0] = count
        distances = np.abs(distances)
    else:
        distances = np.maximum(-distances, 0)
    exact = count // 2
    ratio = np.log(np.maximum(distances, 1).astype(np.float32) / np.float32(exact))
    steps = ratio / np.float32(math.log(longest / exact)) * np.float32(count - exact)
    ranges = np.minimum(exact + steps.astype(np.int64), count - 1)
    return after + np.where(distances < exact, distances, ranges)


def log_buckets(distances: npt.NDArray[np.int64], *, count: int, longest: int) -> npt.NDArray[np.int64]:
    """Return the bucket of each distance from a query to a key, with the distance's sign.

    The smaller half of the buckets on each side has one distance each; the others are ranges, wider in proportion to
    the distance, up to `longest`.

    Source:  He et al. 2021, arXiv:2111.09543; names as in transformers' `make_log_bucket_position`
    """
    middle = count // 2
    size = np.abs(distances)
    size = np.where(size < middle, middle - 1, size).astype(np.float32)
    ratio = np.log(size / np.float32(middle)) / np.log(np.float32((longest - 1) / middle))
    ranges = np.ceil(ratio * np.float32(middle - 1)) + np.float32(middle)
    return np.where(size <= middle, distances, (ranges * np.sign(distances)).astype(np.int64))


def bucket_bias(
    table: Embedding, queries: int, keys: int, *, bidirectional: bool, longest: int, count: int | None = None
) -> Tensor:
    """Return what is added to the scores (1, H, T, S) of the last `queries` of `keys` positions.

    Args:
        table: the bias of each bucket and head.
        bidirectional: False hides the keys after a query.
        longest, count: as for `buckets`; None means as many as the table has.
    """
    kind: Any = {"bidirectional": bidirectional, "count": count or table.num_embeddings, "longest": longest}
    device = table.weight.device
    if is_exporting():  # computed by ops, as a graph has to know no length; all distances beyond are in one bucket
        every = buckets(np.arange(-longest, longest + 1), **kind)
        distance_TS = arange(keys, device=device) - arange(keys - queries, keys, device=device)[:, None]
        index_TS = from_numpy(every).to(device)[distance_TS.clamp(-longest, longest) + longest]
        bias_1HTS = table(index_TS).permute(2, 0, 1)[None]
        return bias_1HTS if bidirectional else bias_1HTS.masked_fill(distance_TS > 0, -math.inf)
    bucket = buckets(np.arange(1 - keys, queries), **kind)
    apart_TS = np.arange(keys) - np.arange(keys - queries, keys)[:, None]
    index_TS = wrap(devices.move(bucket[apart_TS + keys - 1], device))
    bias_1HTS = table(index_TS).permute(2, 0, 1)[None]
    if not bidirectional and queries > 1:
        bias_1HTS = bias_1HTS.masked_fill(wrap(devices.move(apart_TS > 0, device)), -math.inf)
    return bias_1HTS.contiguous()
