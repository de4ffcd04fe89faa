"""Masks: the valid steps of a sequence, stored as an attribute of tensors and passed from layer to layer."""

from __future__ import annotations

from typing import Any

from tallow.core.tensor import Tensor


def masks_of(structure: Any) -> Any:
    """Return the masks of a tensor or of a list of tensors; None if there is no mask at all."""
    if isinstance(structure, Tensor):
        return structure.__dict__.get("_keras_mask")
    if isinstance(structure, list | tuple):
        masks = [masks_of(part) for part in structure]
        return masks if any(mask is not None for mask in masks) else None
    return None


def set_masks(structure: Any, masks: Any) -> None:
    """Attach masks to the tensors they belong to."""
    if isinstance(structure, Tensor):
        if isinstance(masks, Tensor):
            structure.__dict__["_keras_mask"] = masks
    elif isinstance(structure, list | tuple) and isinstance(masks, list | tuple):
        for part, mask in zip(structure, masks, strict=False):
            set_masks(part, mask)


def with_masks(inputs: list[Any], masks: Any) -> list[Any]:
    """Return a model's inputs with the masks that its caller passes: one, or one for each.

    Masked inputs are replaced by views, so that the caller's tensors do not change.
    """
    mask_list = list(masks) if isinstance(masks, list | tuple) else [masks]
    for index, (value, mask) in enumerate(zip(inputs, mask_list, strict=False)):
        if mask is not None and masks_of(value) is not mask:
            inputs[index] = value[...]
            set_masks(inputs[index], mask)
    return inputs
