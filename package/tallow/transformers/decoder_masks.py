"""The masks of decoders: padding anywhere, masks of four dimensions, and texts that follow each other in one row.

Letters: B batch, T positions, S positions with those in the cache.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tallow import devices, dtypes
from tallow.core.apply import apply
from tallow.core.tensor import Tensor, wrap
from tallow.errors import ArgumentError, TallowWarning, UnsupportedError, warn
from tallow.models.decoders.decoder import uncached
from tallow.nn.cache import KVCache, Uncached
from tallow.nn.state_memory import States
from tallow.ops.joining import cat
from tallow.transformers.forward_common import is_consecutive, places_of

LOWEST = -1e4  # masks of scores that hide have at least this size


class Masks(dict[Any, Tensor]):
    """The masks of causal attention to texts with padding anywhere, each made when a layer asks for it.

    Args:    seen: (B, T), True for text
    """

    def __init__(self, seen: npt.NDArray[np.bool_], device: Any) -> None:
        super().__init__()
        self.seen, self.device = seen, device

    def get(self, key: Any, default: Any = None) -> Any:
        """Return the mask (B, 1, T, S) for (queries, keys, window, additive)."""
        if key not in self:
            queries, keys, window, additive = key
            own = np.arange(keys - queries, keys)[:, None]
            visible = self.visible(queries, keys) & (np.arange(keys) > own - (window or keys))
            mask = np.where(visible, np.float32(0), np.float32(-np.inf)) if additive else visible
            self[key] = wrap(devices.move(mask, self.device))
        return super().get(key, default)

    def visible(self, queries: int, keys: int) -> npt.NDArray[np.bool_]:
        """Return what the last queries see of all keys, without a window: (B, 1, T, S)."""
        causal = np.arange(keys) <= np.arange(keys - queries, keys)[:, None]
        return causal & self.seen[:, None, None, -keys:]


class MaskedTexts(Uncached):
    """Texts that are read at once, with padding anywhere: no query sees it."""

    def __init__(self, mask: Tensor) -> None:
        seen = np.asarray(devices.to_host(mask.array)).astype(np.bool_)
        super().__init__(len(seen), np.where(seen.any(axis=1), seen.argmax(axis=1), 0).tolist())
        self._seen = Masks(seen, mask.device)

    def lengths(self, new: int) -> npt.NDArray[np.int64]:
        """Return how many positions of each row are not left padding, (B,)."""
        every = np.full(self.batch, new, np.int64)
        return every if self.padding is None else every - self.padding

    @property
    def masks(self) -> dict[Any, Tensor]:
        """The masks, which layers read."""
        return self._seen


class VisibleTexts(Uncached):
    """Texts that are read at once, where each position sees the places that a mask says.

    Args:    seen: (B, T, T), True for what a query sees
    """

    def __init__(self, seen: npt.NDArray[np.bool_], device: Any) -> None:
        super().__init__(len(seen), [0] * len(seen))
        self._seen = Visible(seen, device)

    def lengths(self, new: int) -> npt.NDArray[np.int64]:
        """Return how many positions each row has, (B,)."""
        return np.full(self.batch, new, np.int64)

    @property
    def masks(self) -> dict[Any, Tensor]:
        """The masks, which layers read."""
        return self._seen


class RecordedTexts:
    """The memory of a cache for tokens that autograd records: layers read what they computed, after what is in it.

    Gradients reach the new tokens, not those before: `backward` warns if autograd has recorded those too.

    Args:
        memory: a KVCache, which has the rest.
        cache: what holds it, a `cache_utils.Cache`.
    """

    def __init__(self, memory: KVCache, cache: Any) -> None:
        self._memory = memory
        self._warns, cache.is_recorded = cache.is_recorded, True

    def append(self, layer: int, k_BGTK: Tensor, v_BGTK: Tensor) -> tuple[Tensor, Tensor]:
        """Copy a layer's keys and values to the memory, and return those of all tokens."""
        every = self._memory.append(layer, k_BGTK.detach(), v_BGTK.detach())
        before = self._memory.length
        if not before:
            return k_BGTK, v_BGTK
        keys, values = (
            apply(cat, [self._before(held[:, :, :before].to(new.dtype)), new], 2)
            for held, new in zip(every, (k_BGTK, v_BGTK), strict=True)
        )
        return keys, values

    def _before(self, held: Tensor) -> Tensor:
        if self._warns:
            held = held.detach().requires_grad_()
            held.register_hook(self._on_gradient)
        return held

    def _on_gradient(self, gradient: Tensor) -> None:
        if self._warns:
            self._warns = False
            warn("gradients end at the tokens in past_key_values: pass all tokens in one call", TallowWarning)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._memory, name)


class Visible(Masks):
    """A mask in the forms that layers ask for.  Args: seen: (B, T, T)"""

    def visible(self, queries: int, keys: int) -> npt.NDArray[np.bool_]:
        """Return what the mask says of the last queries and of all keys: (B, 1, T, S)."""
        return self.seen[:, None, -queries:, -keys:]


def seen_by(
    model: Any, ids: Tensor, mask: Tensor | None, positions: Tensor | None, *, is_alone: bool, use_cache: bool
) -> npt.NDArray[np.bool_] | None:
    """Return what each position sees (B, T, T), by a mask of four dimensions, or positions that begin again.

    Args:
        is_alone: there is no cache.
        use_cache: one was asked for, by the call or the config.

    Without a mask and `use_cache`, positions that do not rise by one begin another text, as in transformers.

    Raises:  ArgumentError for such a mask of another shape, of numbers between its two values, or beside a cache;
             UnsupportedError for several texts in a row of a model whose layers have states, which cross their ends
    """
    batch, length = ids.shape
    if mask is None:
        if positions is None or use_cache or not is_alone or is_consecutive(positions):
            return None
        if any(isinstance(each, States) for each in model.config.layer_shapes or ()):
            raise UnsupportedError(
                f"{type(model).__name__}: several texts in a row; the states of layers do not end with a text",
                hint="pad the texts to rows of their own: no packing and no padding_free",
            )
        steps = np.diff(places_of(positions), axis=1) != 1
        text = np.concatenate([np.zeros((len(steps), 1), np.int64), np.cumsum(steps, axis=1)], axis=1)
        seen = (text[:, :, None] == text[:, None, :]) & np.tri(length, dtype=np.bool_)
        return np.broadcast_to(seen, (batch, length, length))
    if mask.ndim != 4:
        return None
    given = np.asarray(devices.to_host(mask.float().array))
    if given.shape not in ((batch, 1, length, length), (1, 1, length, length)) or not is_alone:
        raise ArgumentError(
            f"{type(model).__name__}: attention_mask of shape {given.shape} for {batch} texts of {length} tokens",
            hint="pass (texts, 1, tokens, tokens) and no past_key_values",
        )
    is_bool = mask.dtype == dtypes.bool
    if not is_bool and ((given != 0) & (given > LOWEST)).any():
        raise ArgumentError(
            f"{type(model).__name__}: attention_mask with scores", hint="use 0 for what is seen, and -inf for the rest"
        )
    seen = given != 0 if is_bool else given == 0
    return np.broadcast_to(seen[:, 0], (batch, length, length))


def texts_of(mask: Tensor) -> KVCache | None:
    """Return how a decoder reads texts with padding; None for texts without any."""
    return MaskedTexts(mask) if has_padding_after_text(mask) else uncached(mask)


def has_padding_after_text(mask: Tensor | None) -> bool:
    """Return whether a mask (B, T) hides tokens that follow others of their row; None hides none."""
    if mask is None:
        return False
    seen = np.asarray(devices.to_host(mask.array)).astype(np.bool_)
    return bool((np.diff(seen.astype(np.int8), axis=1) < 0).any())


def left_padding(mask_BS: Tensor, start: int, new: int) -> npt.NDArray[np.int64]:
    """Return the number of padding tokens on the left of each row, (B,).

    Args:    start, new: the numbers of tokens in the cache and after it
    Raises:  ArgumentError for a mask of another length, and for padding that the cache cannot leave out
    """
    mask = np.asarray(devices.to_host(mask_BS.array)).astype(np.bool_)
    if mask.shape[1] not in (start + new, new):
        raise ArgumentError(
            f"attention_mask for {mask.shape[1]} tokens; the cache has {start}, and {new} follow",
            hint="pass the mask of all tokens, those in the cache too",
        )
    if mask.shape[1] == new and start:
        mask = np.concatenate([np.ones((len(mask), start), np.bool_), mask], axis=1)
    padding: npt.NDArray[np.int64] = np.where(mask.any(axis=1), mask.argmax(axis=1), 0).astype(np.int64)
    if start and (mask.sum(axis=1) != mask.shape[1] - padding).any():
        raise ArgumentError("attention_mask: padding after text, before a cache goes on", hint="pad on the left")
    return padding
