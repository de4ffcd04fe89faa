"""Steps that `forward` has in common in all kinds of models."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt

from tallow import devices
from tallow.core.creation import full
from tallow.core.tensor import Tensor
from tallow.errors import ArgumentError
from tallow.nn.embedding import Embedding
from tallow.nn.module import Module
from tallow.nn.rotary import RotaryEmbedding
from tallow.transformers.capture import capturing, output_of
from tallow.transformers.modeling_outputs import ModelOutput


class Options:
    """The arguments of `forward` about its result; None means as the config says.

    Raises:  ArgumentError for arguments that the model does not have
    """

    def __init__(
        self,
        model: Any,
        hidden: bool | None,
        attentions: bool | None,
        return_dict: bool | None,
        others: dict[str, Any],
    ) -> None:
        config = model.config
        self.hidden = bool(config.output_hidden_states if hidden is None else hidden)
        self.attentions = bool(config.output_attentions if attentions is None else attentions)
        self.return_dict = bool(config.return_dict if return_dict is None else return_dict)
        self.mask: Tensor | None = None  # of padding, for losses that leave it out
        self.count = others.pop("num_items_in_batch", None)
        for name in ("cache_position", "use_cache"):  # the first follows from the cache, which encoders do not have
            others.pop(name, None)
        if unknown := [name for name, value in others.items() if value is not None]:
            raise ArgumentError(f"{type(model).__name__}: forward has no arguments {', '.join(unknown)}")

    def capture(self, stack: Module) -> Any:
        """Record what was asked for in a stack of layers."""
        return capturing(stack, hidden=self.hidden, weights=self.attentions)

    def result(self, kind: Callable[..., ModelOutput], **values: Any) -> Any:
        """Return the result as an object, or as a tuple.

        Models that could read an encoder's result have cross-attentions: none here, where others were asked for.
        """
        if self.attentions and "cross_attentions" in kind.__dataclass_fields__:  # type: ignore[attr-defined]
            values.setdefault("cross_attentions", ())
        made = kind(**values)
        return made if self.return_dict else made.to_tuple()


def one_input(
    model: Any, ids: Tensor | None, embeds: Tensor | None, names: str = "input_ids and inputs_embeds"
) -> None:
    """Raise ArgumentError unless there is one input of two."""
    if (ids is None) == (embeds is None):
        both = "both" if ids is not None else "neither"
        raise ArgumentError(f"{type(model).__name__}: {both} of {names}", hint="pass one of them")


def check_texts(
    model: Any,
    ids: Tensor | None,
    embeds: Tensor | None,
    mask: Tensor | None,
    *,
    cached: bool = False,
    whole: bool = False,
) -> None:
    """Raise ArgumentError for ids that are not (texts, tokens), and for a mask of another shape than theirs.

    Args:
        cached: the mask is also of tokens before these.
        whole: the mask may have four dimensions, and is checked later.
    """
    name, texts = type(model).__name__, ids if ids is not None else embeds
    if texts is None:
        return
    dims = 2 if ids is not None else 3
    if not isinstance(texts, Tensor) or texts.ndim != dims:
        given = tuple(texts.shape) if isinstance(texts, Tensor) else type(texts).__name__
        raise ArgumentError(
            f"{name}: a text or batch of shape {given}",
            hint="pass a tensor (texts, tokens)" + (" of ids" if dims == 2 else ", and a vector for each token"),
        )
    if mask is None:
        return
    shape = tuple(mask.shape) if isinstance(mask, Tensor) else None
    if whole and shape is not None and len(shape) == 4:
        return
    fits = shape is not None and len(shape) == 2 and shape[0] == texts.shape[0]
    if not fits or not (shape[1] == texts.shape[1] or (cached and shape[1] > texts.shape[1])):
        raise ArgumentError(
            f"{name}: attention_mask of shape {shape or type(mask).__name__} for texts of {tuple(texts.shape[:2])}",
            hint="pass (texts, tokens): 1 for text, 0 for padding",
        )


def placeholder_ids(embeds: Tensor, pad: int | None) -> Tensor:
    """Return token ids (B, T) to go with embeddings: any that is not padding."""
    return full(tuple(embeds.shape[:2]), 1 if pad == 0 else 0, dtype=np.int64, device=embeds.device)


@contextmanager
def embeddings(table: Embedding, embeds: Tensor | None) -> Iterator[None]:
    """Let an embedding return `embeds` in the block, unless it is None."""
    with output_of(table, None if embeds is None else lambda: embeds):
        yield


@contextmanager
def positions(table: Embedding | None, ids: Tensor | None, model: Any, mask: Tensor | None = None) -> Iterator[None]:
    """Let a model count its positions as `position_ids` (B or 1, T) say, in the block; None leaves it as it is.

    Args:
        table: the embedding of positions; None for a model whose attention depends only on distances.
        mask: 0 for padding (B, T or more), whose positions do not count in such a model.

    Raises:  ArgumentError for positions that do not rise by one, for a model without rotary embeddings
    """
    if ids is None or (table is None and is_consecutive(ids, mask)):
        yield
    elif table is None:
        with rotated_at(places_of(ids), model):
            yield
    else:
        with output_of(table, lambda: table.weight[ids]):
            yield


def places_of(ids: Tensor) -> npt.NDArray[np.int64]:
    """Return positions (B, T) as an array."""
    return np.asarray(devices.to_host(ids.array), np.int64).reshape(-1, ids.shape[-1])


def shift_of(ids: Tensor, start: int, mask: Tensor | None) -> npt.NDArray[np.int64] | None:
    """Return how far the positions of each row are from `start`, `start` + 1, ..., (B or 1,).

    Returns: None if they do not rise by one from token to token, apart from those that the mask hides
    """
    offsets = places_of(ids) - np.arange(start, start + ids.shape[-1])
    seen = np.ones_like(offsets, np.bool_)
    if mask is not None:
        seen = np.asarray(devices.to_host(mask.array)).astype(np.bool_)[:, -ids.shape[-1] :]
    offsets, seen = np.broadcast_arrays(offsets, seen)
    first: npt.NDArray[np.int64] = np.take_along_axis(offsets, seen.argmax(axis=1)[:, None], axis=1)
    return None if ((offsets != first) & seen).any() else first[:, 0]


def is_consecutive(ids: Tensor, mask: Tensor | None = None) -> bool:
    """Return whether positions (B or 1, T) rise by one from token to token, apart from those that a mask hides."""
    return shift_of(ids, 0, mask) is not None


@contextmanager
def continued(ids: Tensor | None, model: Any, cache: Any, mask: Tensor | None) -> Iterator[None]:
    """Let a model without an embedding of positions count them as `ids` say, in the block, after those of a cache.

    Keys in the cache are rotated by their places in it, so that only the distance to them decides.
    """
    start = cache.get_seq_length()
    shift = None if ids is None else shift_of(ids, start, mask)
    if not start:
        is_known = ids is not None or mask is None
        cache.shift = (np.zeros(1, np.int64) if shift is None else shift) if is_known else None
    held = cache.shift
    if ids is None or (shift is not None and (held is None or (shift == held).all())):
        yield
        return
    with rotated_at(places_of(ids) - (0 if held is None else held[:, None]), model):
        yield


@contextmanager
def rotated_at(places: npt.NDArray[np.int64], model: Any) -> Iterator[None]:
    """Let the rotary embeddings of a model rotate by positions (B or 1, T), in the block.

    Raises:  ArgumentError for a model without any
    """
    found = [module for module in model.modules() if isinstance(module, RotaryEmbedding)]
    if not found:
        raise ArgumentError(
            f"{type(model).__name__}: position_ids that do not go on one by one",
            hint="leave position_ids out: positions follow from attention_mask",
        )
    with ExitStack() as stack:
        for module in found:
            hook = module.register_forward_hook(lambda own, args, _: own.rotate_at(args[0], places))
            stack.callback(hook.remove)
        yield
