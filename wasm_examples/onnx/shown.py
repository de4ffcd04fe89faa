"""Values as the page shows them: classes, pictures, boxes, tables. outputs.js documents the forms."""

from __future__ import annotations

import ast
import json
from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

import tallow as tl

Floats: TypeAlias = npt.NDArray[np.float32]

LABELS = ("names", "classes", "labels", "class_names", "id2label")  # entries of a file's metadata
LONGEST_LABELS = 200_000  # characters of such an entry
MOST_LABELS = 100_000
TOP = 5
TILES, ACROSS = 16, 4  # channels of a value within the graph, and of them in a row
LEAST_SIDE, MOST_SIDE = 8, 1024  # of a picture
ROWS, COLUMNS = 60, 12  # of a table
MOST_BOXES = 40
LEAST_SCORE = 0.3
OVERLAP = 0.5
# Colours of the classes of a segmentation, far from each other: turns of the golden angle.
PALETTE = (np.modf(np.outer(np.arange(256), [0.618034, 0.381966, 0.236068]))[0] * 200 + 40).astype(np.uint8)


def labels_of(metadata: Mapping[str, Any]) -> list[str]:
    """Return the names of classes in a file's metadata, where exporters write them; or none."""
    for key in LABELS:
        text = metadata.get(key) or ""
        text = text if isinstance(text, str) else json.dumps(text)
        if not text or len(text) > LONGEST_LABELS:
            continue
        parsed: Any = None
        for parse in (json.loads, ast.literal_eval):
            try:
                parsed = parse(text)
                break
            except (ValueError, SyntaxError, RecursionError, MemoryError):
                continue
        values = [*parsed.values()] if isinstance(parsed, dict) else parsed
        if isinstance(values, list) and 0 < len(values) <= MOST_LABELS:
            return [str(value) for value in values]
    return []


def shown_outputs(outputs: Mapping[str, Any], labels: list[str], size: tuple[int, int]) -> list[dict[str, Any]]:
    """Return each output with the views that fit.

    Args:  size: width and height of the picture that went in
    """
    shown = {name: _shown(name, value, labels) for name, value in outputs.items()}
    found = boxes_in({name: as_array(v) for name, v in outputs.items() if isinstance(v, tl.Tensor)}, labels, size)
    for name, boxes in found.items():
        shown[name]["views"] = {"boxes": boxes, **shown[name]["views"]}
    return [*shown.values()]


def shown_value(value: Any) -> dict[str, Any]:
    """Return the views of a value within the graph: the first channels beside each other, and a table."""
    shown = _shown("", value, [])
    if isinstance(value, tl.Tensor) and value.ndim == 4 and value.shape[1] > 3:
        shown["views"]["picture"] = _picture(_tiled(as_array(value)[0, :TILES]))
    return shown


def _tiled(maps_CHW: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return channels as one picture, each scaled to its own range, with a line between them."""
    maps = np.nan_to_num(maps_CHW.astype(np.float32))
    low, high = maps.min((1, 2), keepdims=True), maps.max((1, 2), keepdims=True)
    maps = np.pad((maps - low) / np.maximum(high - low, 1e-12), ((0, -len(maps) % ACROSS), (0, 1), (0, 1)))
    rows = maps.reshape(-1, ACROSS, *maps.shape[1:])
    return np.concatenate([np.concatenate(list(row), axis=1) for row in rows])


def as_array(value: tl.Tensor) -> npt.NDArray[Any]:
    """Return a tensor's values as an array; bfloat16 and float8 as float32."""
    tensor = value.detach()
    return tensor.float().numpy() if tensor.is_floating_point() else tensor.numpy()


def _shown(name: str, value: Any, labels: list[str]) -> dict[str, Any]:
    if not isinstance(value, tl.Tensor):
        text = str(value.tolist() if isinstance(value, np.ndarray) else value)[:2000]
        table = {"header": [], "rows": [[text]], "note": ""}
        return {"name": name, "dtype": type(value).__name__, "shape": "", "summary": "", "views": {"table": table}}
    array = as_array(value)
    views: dict[str, Any] = {}
    if name and (classes := _classes(array, labels)):
        views["classes"] = classes
    if (picture := _picture(array)) is not None:
        views["picture"] = picture
    views["table"] = _table(array)
    return {
        "name": name,
        "dtype": str(value.dtype).rpartition(".")[2],
        "shape": " × ".join(map(str, value.shape)) or "scalar",
        "summary": _summary(array),
        "views": views,
    }


def _summary(array: npt.NDArray[Any]) -> str:
    if not array.size or array.dtype.kind not in "fiu":
        return ""
    finite = array[np.isfinite(array)] if array.dtype.kind == "f" else array
    if not finite.size:
        return "no finite value"
    bad = array.size - finite.size
    finite = finite.astype(np.float64)  # squares of float32 may be infinite
    numbers = f"from {finite.min():.4g} to {finite.max():.4g}, mean {finite.mean():.4g}, deviation {finite.std():.4g}"
    return numbers + (f"; {bad} NaN or infinite" if bad else "")


def _classes(array: npt.NDArray[Any], labels: list[str]) -> list[dict[str, Any]]:
    """Return the likeliest classes of a row of scores, by softmax unless they are probabilities already."""
    if array.dtype.kind != "f" or array.ndim > 2 or array.size < 2 or array.size != array.shape[-1]:
        return []
    row = array.reshape(-1).astype(np.float64)
    if row.size > MOST_LABELS or not np.isfinite(row).all():
        return []
    if not (row.min() >= 0 and abs(row.sum() - 1) < 1e-3):
        row = np.exp(row - row.max())
        row /= row.sum()
    best = np.argsort(-row, kind="stable")[:TOP]
    return [{"label": _label(int(i), labels), "share": float(row[i])} for i in best]


def _label(i: int, labels: list[str]) -> str:
    return labels[i] if i < len(labels) else f"class {i}"


def _picture(array: npt.NDArray[Any]) -> dict[str, Any] | None:
    """Return an array of two or three dims as a picture: grey, in colours, or by the largest of several channels."""
    while array.ndim > 2 and array.shape[0] == 1:
        array = array[0]
    if array.ndim == 3 and array.shape[2] in (1, 3) and array.shape[0] > 4:
        array = array.transpose(2, 0, 1)
    if array.ndim == 2:
        array = array[None]
    if array.ndim != 3 or array.dtype.kind not in "fiub" or min(array.shape[1:]) < LEAST_SIDE:
        return None
    step = max(1, -(-max(array.shape[1:]) // MOST_SIDE))
    array = array[:, ::step, ::step]
    height, width = array.shape[1:]
    pixels = np.full((height, width, 4), 255, np.uint8)
    if len(array) in (1, 3):
        values = np.nan_to_num(array.astype(np.float32))
        low, high = values.min(), values.max()
        pixels[..., :3] = ((values - low) * (255 / max(high - low, 1e-12))).transpose(1, 2, 0)
    else:
        pixels[..., :3] = PALETTE[array.argmax(0) % len(PALETTE)]
    return {"width": width, "height": height, "pixels": pixels.reshape(-1)}


def _table(array: npt.NDArray[Any]) -> dict[str, Any]:
    """Return the first values, in rows of the last dim."""
    rows = array.reshape(-1, array.shape[-1]) if array.ndim and array.shape[-1] else array.reshape(-1, 1)
    part = rows[:ROWS, :COLUMNS]
    number = "{:.5g}".format if array.dtype.kind == "f" else str
    is_cut = part.shape != rows.shape
    return {
        "header": [str(i) for i in range(part.shape[1])] if part.shape[1] > 1 else [],
        "rows": [[number(each) for each in row] for row in part.tolist()],
        "note": f"The first {part.shape[0]} × {part.shape[1]} of {rows.shape[0]:,} × {rows.shape[1]:,}."
        if is_cut
        else "",
    }


# -------------------------------------------------------------------------------------------------------------- boxes


def boxes_in(arrays: Mapping[str, npt.NDArray[Any]], labels: list[str], size: tuple[int, int]) -> dict[str, Any]:
    """Return the boxes of a detector by the name of the output that has them, for three common forms:

    DETR   (1, N, classes + 1) logits and (1, N, 4) centres and sizes in shares of the picture
    YOLO   (1, 4 + classes, N) centres and sizes in pixels, and scores, if the file names that many classes
    rows   (1, N, 6) corners in pixels, score, class
    """
    width, height = size
    if not width:
        return {}
    for name, array in arrays.items():
        if array.ndim != 3 or array.shape[0] != 1 or array.dtype.kind != "f":
            continue
        rows = array[0].astype(np.float32)
        if rows.shape[1] == 4:
            logits = next(
                (a[0] for a in arrays.values() if a.ndim == 3 and a.shape[:2] == array.shape[:2] and a.shape[2] > 4),
                None,
            )
            if logits is not None:
                shares = np.exp(logits - logits.max(-1, keepdims=True))
                shares /= shares.sum(-1, keepdims=True)
                return {name: _chosen(_corners(rows), shares[:, :-1], labels)}
        elif labels and rows.shape[0] == 4 + len(labels):
            return {name: _chosen(_corners(rows[:4].T / [width, height, width, height]), rows[4:].T, labels)}
        elif rows.shape[1] == 6:
            scores = np.zeros((len(rows), int(np.clip(rows[:, 5].max(initial=0), 0, 9999)) + 1), np.float32)
            scores[np.arange(len(rows)), np.clip(rows[:, 5], 0, 9999).astype(int)] = rows[:, 4]
            return {name: _chosen(rows[:, :4] / [width, height, width, height], scores, labels)}
    return {}


def _corners(boxes_N4: Any) -> Any:
    """Return (left, top, right, bottom) of centres and sizes."""
    centre, half = boxes_N4[:, :2], boxes_N4[:, 2:] / 2
    return np.concatenate([centre - half, centre + half], 1)


def _chosen(corners_N4: Any, scores_NC: Any, labels: list[str]) -> list[dict[str, Any]]:
    """Return the likely boxes, the likeliest first, without those that overlap a likelier one of their class."""
    best, classes = scores_NC.max(-1), scores_NC.argmax(-1)
    chosen: list[int] = []
    for i in np.argsort(-best, kind="stable")[: 10 * MOST_BOXES].tolist():
        if best[i] < LEAST_SCORE or len(chosen) == MOST_BOXES:
            break
        if all(classes[i] != classes[j] or _overlap(corners_N4[i], corners_N4[j]) < OVERLAP for j in chosen):
            chosen.append(i)
    sides = ("left", "top", "right", "bottom")
    return [
        dict(zip(sides, np.clip(corners_N4[i], 0, 1).tolist(), strict=True))
        | {"label": _label(int(classes[i]), labels), "score": float(best[i])}
        for i in chosen
    ]


def _overlap(a: Any, b: Any) -> float:
    """Return the area that two boxes share, divided by that of both."""
    inner = np.maximum(0, np.minimum(a[2:], b[2:]) - np.maximum(a[:2], b[:2])).prod()
    both = (a[2:] - a[:2]).prod() + (b[2:] - b[:2]).prod() - inner
    return float(inner / max(both, 1e-12))
