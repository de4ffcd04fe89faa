"""Masks: which steps of a sequence count. They travel with tensors, as an attribute, from layer to layer."""

from __future__ import annotations

from typing import Any

from tallow.tensor import Tensor


def masks_of(structure: Any) -> Any:
    """The masks that travel with tensors: which steps of a sequence count. None if there is no mask at all."""
    if isinstance(structure, Tensor):
        return structure.__dict__.get("_keras_mask")
    if isinstance(structure, list | tuple):
        masks = [masks_of(part) for part in structure]
        return masks if any(mask is not None for mask in masks) else None
    return None


def set_masks(structure: Any, masks: Any) -> None:
    """Let masks travel with the results they belong to."""
    if isinstance(structure, Tensor):
        if isinstance(masks, Tensor):
            structure.__dict__["_keras_mask"] = masks
    elif isinstance(structure, list | tuple) and isinstance(masks, list | tuple):
        for part, mask in zip(structure, masks, strict=False):
            set_masks(part, mask)


def with_masks(inputs: list[Any], masks: Any) -> list[Any]:
    """A model's inputs, with the masks that its caller passes: one, or one for each. The caller's tensors stay."""
    given = list(masks) if isinstance(masks, list | tuple) else [masks]
    for place, (value, mask) in enumerate(zip(inputs, given, strict=False)):
        if mask is not None and masks_of(value) is not mask:
            inputs[place] = value[...]
            set_masks(inputs[place], mask)
    return inputs
