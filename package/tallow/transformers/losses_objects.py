"""Losses of models that find objects: each object is assigned to the query that is nearest to it.

Letters: B batch, Q queries, N labels, O objects of a picture, P pairs of a query and an object, Y and X pixels.

Source:  Carion et al. 2020, arXiv:2005.12872, section 3.1; Rezatofighi et al. 2019, arXiv:1902.09630; names and weights
         as in transformers
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tallow import devices, dtypes
from tallow.core.apply import apply
from tallow.core.creation import full, ones, tensor, zeros
from tallow.core.tensor import Tensor
from tallow.errors import ArgumentError
from tallow.models.vision.assignment import cheapest_assignment
from tallow.nn import functional as F
from tallow.ops.joining import cat, stack
from tallow.tape.modes import no_grad

Found = Mapping[str, Tensor]  # "logits", "pred_boxes", "pred_masks"
Labels = Sequence[Mapping[str, Tensor]]  # of each picture
Pairs = list[tuple[Tensor, Tensor]]  # of each picture, the queries and the objects
OF_DETECTION = ("class_labels", "boxes")
ALPHA, GAMMA = 0.25, 2  # of the focal loss


def corners(boxes: Tensor) -> Tensor:
    """Return boxes (..., 4) of centre, width and height as left, top, right and bottom."""
    x, y, width, height = boxes.unbind(-1)
    return apply(stack, (x - width / 2, y - height / 2, x + width / 2, y + height / 2), -1)


def generalized_overlap(one: Tensor, two: Tensor) -> Tensor:
    """Return the generalized intersection over union of boxes (..., 4), given by corners; leading dims broadcast."""
    edges = (one[..., :2].maximum(two[..., :2]), one[..., 2:].minimum(two[..., 2:]))
    outer = one[..., 2:].maximum(two[..., 2:]) - one[..., :2].minimum(two[..., :2])
    shared = (edges[1] - edges[0]).clamp(min=0).prod(-1)
    areas = [(each[..., 2:] - each[..., :2]).prod(-1) for each in (one, two)]
    union, hull = areas[0] + areas[1] - shared, outer.clamp(min=0).prod(-1)
    return shared / union - (hull - union) / hull


def matched(found: Found, labels: Labels, config: Any) -> Pairs:
    """Return the cheapest pairs of queries and objects of each picture."""
    pairs = []
    with no_grad():
        shares = found["logits"].float().softmax(-1)
        for share_QN, boxes_Q4, own in zip(shares, found["pred_boxes"].float(), labels, strict=True):
            wanted = own["boxes"].float()
            distances = (boxes_Q4[:, None] - wanted[None]).abs().sum(-1)
            overlaps = generalized_overlap(corners(boxes_Q4)[:, None], corners(wanted)[None])
            costs = config.bbox_cost * distances - config.class_cost * share_QN[:, own["class_labels"]]
            table = np.asarray(devices.to_host((costs - config.giou_cost * overlaps).array))
            most = float(np.finfo(np.float32).max)
            rows, columns = cheapest_assignment(np.nan_to_num(table, nan=most, posinf=most, neginf=most))
            pairs.append((tensor(rows, device=boxes_Q4.device), tensor(columns, device=boxes_Q4.device)))
    return pairs


def _places(pairs: Pairs, side: int) -> tuple[Tensor, Tensor]:
    """Return the pictures and the queries (side 0) or objects (side 1) of all pairs, (P,)."""
    pictures = [full(tuple(pair[0].shape), i, dtype=dtypes.int64) for i, pair in enumerate(pairs)]
    index = apply(cat, [pair[side] for pair in pairs])
    return apply(cat, pictures).to(index.device), index


def of_labels(found: Found, labels: Labels, pairs: Pairs, config: Any) -> dict[str, Tensor]:
    """Return the loss of labels, in which queries without an object count less, and the error of their number."""
    logits = found["logits"]
    kinds, device = config.num_labels, logits.device
    wanted_BQ = full(tuple(logits.shape[:2]), kinds, dtype=dtypes.int64, device=device)
    own = [each["class_labels"][objects] for each, (_, objects) in zip(labels, pairs, strict=True)]
    wanted_BQ[_places(pairs, 0)] = apply(cat, own).to(device, dtypes.int64)
    weights = ones((kinds + 1,), device=device)
    weights[-1] = config.eos_coefficient
    with no_grad():
        counts = (logits.argmax(-1) != logits.shape[-1] - 1).sum(1).float()
        sizes = tensor([float(len(each["class_labels"])) for each in labels], device=device)
        error = F.l1_loss(counts, sizes)
    return {"loss_ce": F.cross_entropy(logits.transpose(1, 2), wanted_BQ, weights), "cardinality_error": error}


def of_boxes(found: Found, labels: Labels, pairs: Pairs, count: float) -> dict[str, Tensor]:
    """Return the losses of boxes: of their numbers, and of their overlap."""
    boxes = found["pred_boxes"][_places(pairs, 0)]
    own = [each["boxes"][objects] for each, (_, objects) in zip(labels, pairs, strict=True)]
    wanted = apply(cat, own).to(boxes.device)
    overlaps = generalized_overlap(corners(boxes), corners(wanted))
    distance = F.l1_loss(boxes, wanted, reduction="sum")
    return {"loss_bbox": distance / count, "loss_giou": (1 - overlaps).sum() / count}


def of_masks(found: Found, labels: Labels, pairs: Pairs, count: float) -> dict[str, Tensor]:
    """Return the losses of masks: the focal one of pixels, and that of areas (Dice)."""
    masks = found["pred_masks"][_places(pairs, 0)]
    own = [each["masks"][objects] for each, (_, objects) in zip(labels, pairs, strict=True)]
    size = [max(int(each["masks"].shape[axis]) for each in labels) for axis in (1, 2)]
    padded = [F.pad(each, (0, size[1] - each.shape[2], 0, size[0] - each.shape[1])) for each in own]
    wanted = apply(cat, padded).to(masks.device, masks.dtype).flatten(1)
    logits = F.interpolate(masks[:, None], size=tuple(size), mode="bilinear", align_corners=False)[:, 0].flatten(1)
    shares = logits.sigmoid()
    right = shares * wanted + (1 - shares) * (1 - wanted)
    focal = F.binary_cross_entropy_with_logits(logits, wanted, reduction="none") * (1 - right) ** GAMMA
    focal = (ALPHA * wanted + (1 - ALPHA) * (1 - wanted)) * focal
    areas = 1 - (2 * (shares * wanted).sum(1) + 1) / (shares.sum(1) + wanted.sum(1) + 1)
    return {"loss_mask": focal.mean(1).sum() / count, "loss_dice": areas.sum() / count}


def _on(labels: Labels, device: Any) -> Labels:
    """Return the labels with their tensors on a device."""
    return [{name: value.to(device) for name, value in own.items() if isinstance(value, Tensor)} for own in labels]


def _check(found: Found, labels: Labels, entries: Sequence[str]) -> None:
    batch = found["logits"].shape[0]
    if len(labels) != batch:
        raise ArgumentError(f"labels of {len(labels)} pictures for a batch of {batch}", hint="pass one dict for each")
    for number, each in enumerate(labels):
        if absent := [name for name in entries if name not in each]:
            raise ArgumentError(f"labels of picture {number} lack {', '.join(absent)}")
        sizes = {name: len(each[name]) for name in entries}
        if len(set(sizes.values())) > 1:
            raise ArgumentError(f"labels of picture {number}: {sizes} are of different numbers of objects")


def _of_objects(
    found: dict[str, Any], labels: Labels, config: Any, each: tuple[Tensor, Tensor] | None, entries: Sequence[str]
) -> tuple[Tensor, dict[str, Tensor], list[dict[str, Tensor]] | None]:
    """Return the weighted sum of the losses, each by its name, and the results of the layers before the last.

    Args:
        each: the logits and boxes (layers, B, Q, ...) of all layers of the decoder; None leaves out their losses.
        entries: those that the labels of a picture must have.
    """
    _check(found, labels, entries)
    count = max(float(sum(len(own["class_labels"]) for own in labels)), 1.0)
    weights = {"loss_ce": 1, "loss_bbox": config.bbox_loss_coefficient, "loss_giou": config.giou_loss_coefficient}
    weights |= {"loss_mask": config.mask_loss_coefficient, "loss_dice": config.dice_loss_coefficient}

    def losses(given: Found) -> dict[str, Tensor]:
        pairs = matched(given, labels, config)
        parts = of_labels(given, labels, pairs, config)
        parts = {"loss_ce": parts["loss_ce"], **of_boxes(given, labels, pairs, count), **parts}
        return parts | (of_masks(given, labels, pairs, count) if "pred_masks" in given else {})

    parts, others = losses(found), None
    if each is not None:
        others = [{"logits": a, "pred_boxes": b} for a, b in zip(each[0][:-1], each[1][:-1], strict=True)]
        for number, given in enumerate(others):
            parts |= {f"{name}_{number}": value for name, value in losses(given).items()}
    total = zeros((), device=found["logits"].device)
    for name, value in parts.items():
        stem = name.rstrip("0123456789").rstrip("_")
        if stem in weights:
            total = total + value * weights[stem]
    return total, parts, others


def of_detection(
    logits: Tensor,
    labels: Labels,
    device: Any,
    pred_boxes: Tensor,
    config: Any,
    outputs_class: Tensor | None = None,
    outputs_coord: Tensor | None = None,
) -> Any:
    """Return the loss of found objects, its parts, and the results of the layers before the last.

    Args:
        logits: (B, Q, N + 1), the last one for no object.
        labels: for each picture `class_labels` (O,) and `boxes` (O, 4): centre, width, height, parts of the picture.
        device: of the labels, where the losses are computed.
        pred_boxes: (B, Q, 4).
        config: of a DETR.
        outputs_class, outputs_coord: logits and boxes of all layers, (layers, B, Q, ...), with `config.auxiliary_loss`.

    Raises:  ArgumentError for labels that do not fit
    """
    each = (outputs_class, outputs_coord) if outputs_class is not None and outputs_coord is not None else None
    return _of_objects({"logits": logits, "pred_boxes": pred_boxes}, _on(labels, device), config, each, OF_DETECTION)


def of_segmentation(
    logits: Tensor,
    labels: Labels,
    device: Any,
    pred_boxes: Tensor,
    pred_masks: Tensor,
    config: Any,
    outputs_class: Tensor | None = None,
    outputs_coord: Tensor | None = None,
) -> Any:
    """Return the loss of found objects and masks.

    Args:
        pred_masks: (B, Q, Y, X), logits.
        others: as `of_detection`; labels have `masks` (O, Y, X) too, 1 for the pixels of an object.

    Raises:  ArgumentError for labels that do not fit
    """
    each = (outputs_class, outputs_coord) if outputs_class is not None and outputs_coord is not None else None
    found = {"logits": logits, "pred_boxes": pred_boxes, "pred_masks": pred_masks}
    return _of_objects(found, _on(labels, device), config, each, (*OF_DETECTION, "masks"))
