"""The inside of a network, and its mistakes, in numbers that the page draws."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from training import EVALUATION_EXAMPLES, Trainer

import tallow as tl
from tallow import nn

# The neurons of a layer that are drawn, and the positions along each axis of their planes.
NEURONS = 8
SIDE = 20
MISTAKES = 24


def grid(view: float, side: int) -> tl.Tensor:
    """Return points (side * side, 2) that cover -view to view on both axes, row by row from the top left."""
    axis = tl.linspace(-view, view, side)
    rows, columns = tl.meshgrid(-axis, axis, indexing="ij")
    return tl.stack([columns, rows], dim=-1).reshape(-1, 2)


def diagram(network: nn.Sequential, view: float) -> dict[str, Any]:
    """Return the planes of neurons and the weights between them, of an MLP for points.

    The layers are the inputs, each hidden layer after its activation, and the logits; of each, at most NEURONS.

    Returns:
        sizes: the number of neurons of each layer.
        planes: int8, SIDE * SIDE for each neuron: its values over the plane, relative to the largest of its layer.
        weights: float32, for each pair of neighbouring layers the weights (to, from), row by row.
        biases: float32, of the neurons after the first layer.
    """
    sizes, planes, weights, biases = [2], [], [], []
    values = grid(view, SIDE)
    planes.append(_plane_bytes(values))
    with tl.no_grad():
        for i, layer in enumerate(network):
            values = layer(values)
            if isinstance(layer, nn.Linear):
                weights.append(layer.weight[:NEURONS, :NEURONS].numpy().ravel())
                biases.append(layer.bias[:NEURONS].numpy())
            if not isinstance(layer, nn.Linear) or i == len(network) - 1:
                sizes.append(values.shape[1])
                planes.append(_plane_bytes(values))
    return {
        "side": SIDE,
        "most": NEURONS,
        "sizes": sizes,
        "planes": np.concatenate(planes),
        "weights": np.concatenate(weights),
        "biases": np.concatenate(biases),
    }


def _plane_bytes(values: tl.Tensor) -> npt.NDArray[np.int8]:
    """Return the planes of the first neurons (positions, neurons), one after the other, from -127 to 127."""
    shown = values[:, :NEURONS].numpy()
    shown = np.nan_to_num(shown, nan=0.0, posinf=0.0, neginf=0.0)
    return np.rint(shown.T * (127 / max(float(np.abs(shown).max()), 1e-6))).astype(np.int8).ravel()


def mistakes(trainer: Trainer, samples: int) -> dict[str, Any]:
    """Return the network's predictions of test images: of the first `samples`, and the mistakes among all evaluated.

    Returns:
        classes, confidence: of the samples, as bytes; a confidence of 255 is certain.
        confusion: uint32, (true class, predicted class), row by row.
        mistakes: the images, labels, predicted classes and confidence of the most confident mistakes, as bytes.
    """
    data = trainer.data
    indices = data.test[:EVALUATION_EXAMPLES]
    logits = trainer.logits(data.x[indices])
    best, guessed = logits.softmax(1).nan_to_num(0).max(1)
    confidence, classes, labels = best.numpy(), guessed.numpy(), data.y[indices].numpy()
    count = logits.shape[1]
    confusion = np.bincount(labels * count + classes, minlength=count * count).astype(np.uint32)
    wrong = np.flatnonzero(classes != labels)
    wrong = wrong[np.argsort(-confidence[wrong], kind="stable")][:MISTAKES]
    images = data.x[indices[tl.from_numpy(wrong.astype(np.int64))]].numpy() if len(wrong) else np.zeros(0, np.float32)
    return {
        "classes": classes[:samples].astype(np.uint8),
        "confidence": np.rint(255 * confidence[:samples]).astype(np.uint8),
        "confusion": confusion,
        "mistakes": {
            "pixels": np.rint(255 * images).astype(np.uint8).ravel(),
            "labels": labels[wrong].astype(np.uint8),
            "classes": classes[wrong].astype(np.uint8),
            "confidence": np.rint(255 * confidence[wrong]).astype(np.uint8),
        },
    }
