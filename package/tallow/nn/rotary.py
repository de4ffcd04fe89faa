"""The angles of rotary position embedding, and the layer that turns queries and keys by them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from tallow import devices
from tallow.apply import apply
from tallow.dtypes import Array
from tallow.errors import ArgumentError
from tallow.nn.module import Module
from tallow.ops.rotary import rotary
from tallow.tensor import Tensor


class RotaryEmbedding(Module):
    """Turns pairs of a head's elements by pos · base^(-2i/K), for pair i of K/2.

    Args:
        head_dim: K, even.
        base: theta in Hugging Face's configs.
        interleaved: pairs (2i, 2i + 1), as in llama2.c; otherwise (i, i + K/2), as in Hugging Face's checkpoints.
        scaling: a config's `rope_scaling`, of type "default", "linear", "divisors", "dynamic" or "llama3"; see
            `frequencies`.
        context: positions of the texts that the model was trained on; "dynamic" scales beyond them.

    Source:  Su et al. 2021, arXiv:2104.09864
    """

    def __init__(
        self,
        head_dim: int,
        base: float = 10000.0,
        *,
        interleaved: bool = False,
        scaling: Mapping[str, Any] | None = None,
        context: int | None = None,
    ) -> None:
        super().__init__()
        if head_dim < 2 or head_dim % 2:
            raise ArgumentError(f"RotaryEmbedding: head_dim={head_dim}", mend="rotary pairs need an even head width")
        self.head_dim = head_dim
        self.base = base
        self.interleaved = interleaved
        self.scaling = scaling
        self.context = context
        self.frequencies = frequencies(head_dim, base, scaling, context)
        self._tables: dict[devices.device, tuple[Array, Array]] = {}

    def tables(self, length: int, device: devices.device = devices.CPU) -> tuple[Array, Array]:
        """cos and sin of the first `length` positions, float32 (length, K/2), on `device`; kept for the next call."""
        if self.context is not None and length > self.context and is_dynamic(self.scaling):
            longer = frequencies(self.head_dim, self.base, self.scaling, self.context, length)
            return _tables(length, longer, device)
        kept = self._tables.get(device)
        if kept is None or len(kept[0]) < length:
            rounded = 1 << max(length - 1, 0).bit_length()
            kept = self._tables[device] = _tables(rounded, self.frequencies, device)
        return kept[0][:length], kept[1][:length]

    def forward(self, x_BHTK: Tensor, start: int = 0) -> Tensor:
        """Turn by the positions `start`, `start` + 1, ..."""
        cos, sin = self.tables(start + x_BHTK.shape[-2], x_BHTK.device)
        return apply(rotary, x_BHTK, cos[start:], sin[start:], interleaved=self.interleaved)

    def extra_repr(self) -> str:
        return f"{self.head_dim}, base={self.base}, interleaved={self.interleaved}"


def _tables(length: int, radians: npt.NDArray[np.float32], device: devices.device) -> tuple[Array, Array]:
    # The angle is rounded to float32, as in every implementation a checkpoint may have been trained with; the cosine of
    # that angle is then computed in float64, so that it does not depend on the platform's cosf.
    angles = np.outer(np.arange(length, dtype=np.float32), radians).astype(np.float64)
    cos, sin = np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)
    return devices.move(cos, device), devices.move(sin, device)


def is_dynamic(scaling: Mapping[str, Any] | None) -> bool:
    """Whether the frequencies depend on the length of the text."""
    return _kind(scaling or {}) == "dynamic"


def _kind(scaling: Mapping[str, Any]) -> Any:
    return scaling.get("rope_type", scaling.get("type", "default"))


def frequencies(
    head_dim: int,
    base: float,
    scaling: Mapping[str, Any] | None = None,
    context: int | None = None,
    length: int | None = None,
) -> npt.NDArray[np.float32]:
    """Radians per position of each pair, (K/2,).

    "linear" divides all by `factor`, "divisors" each by its own, as GGUF files have them. "dynamic" takes a larger base
    for a `length` beyond the `context`. "llama3" divides those whose wave is longer than the original context over
    `low_freq_factor`, keeps those shorter than over `high_freq_factor`, and goes from one to the other in between.

    Raises:  ArgumentError for another type of scaling, or one with an entry that is missing or not known
    Source:  "llama3": https://github.com/meta-llama/llama-models, `models/llama3/model.py`, apply_scaling; "dynamic":
             `modeling_rope_utils.py` of transformers
    """
    scaling = scaling or {}
    kind = _kind(scaling)
    if not isinstance(kind, str) or kind not in SCALINGS:
        raise ArgumentError(f"rope_scaling of type {kind!r}", mend=f"tallow has {', '.join(map(repr, SCALINGS))}")
    scale, entries = SCALINGS[kind]
    unknown = [name for name in scaling if name not in (*entries, "rope_type", "type", "rope_theta")]
    if unknown:
        raise ArgumentError(f"rope_scaling of type {kind!r} has {', '.join(unknown)}", mend=f"it knows {entries}")
    try:
        if kind == "dynamic" and context and length and length > context:
            growth = scaling["factor"] * length / context - (scaling["factor"] - 1)
            base = base * growth ** (head_dim / (head_dim - 2))
        plain = base ** (-np.arange(0, head_dim, 2, dtype=np.float64) / head_dim)
        return scale(plain, scaling).astype(np.float32)
    except KeyError as error:
        raise ArgumentError(f"rope_scaling of type {kind!r} lacks {error}") from error
    except (TypeError, ZeroDivisionError) as error:
        raise ArgumentError(
            f"rope_scaling={dict(scaling)!r}: {error}", mend="its values are positive numbers"
        ) from error


def _llama3(plain: npt.NDArray[np.float64], scaling: Mapping[str, Any]) -> npt.NDArray[np.float64]:
    low, high = scaling["low_freq_factor"], scaling["high_freq_factor"]
    turns = scaling["original_max_position_embeddings"] * plain / (2 * math.pi)  # within the original context
    kept = np.clip((turns - low) / (high - low), 0, 1)
    return (1 - kept) * plain / scaling["factor"] + kept * plain


def _dynamic(plain: npt.NDArray[np.float64], scaling: Mapping[str, Any]) -> npt.NDArray[np.float64]:
    if not scaling["factor"] >= 1:
        raise TypeError("factor is 1 or more")
    return plain


# What each type does to the plain frequencies, and its entries.
SCALINGS: dict[
    str, tuple[Callable[[npt.NDArray[np.float64], Mapping[str, Any]], npt.NDArray[np.float64]], tuple[str, ...]]
] = {
    "default": (lambda plain, scaling: plain, ()),
    "linear": (lambda plain, scaling: plain / scaling["factor"], ("factor",)),
    "dynamic": (_dynamic, ("factor",)),
    "divisors": (lambda plain, scaling: plain / np.asarray(scaling["divisors"], np.float64), ("divisors",)),
    "llama3": (_llama3, ("factor", "low_freq_factor", "high_freq_factor", "original_max_position_embeddings")),
}
