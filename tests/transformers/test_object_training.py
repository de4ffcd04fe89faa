"""DETR is trained: losses of labels, boxes and masks, of each layer too, and their gradients."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.transformers.both import both
from tests.transformers.folders import Folders
from tests.transformers.test_models import PIXELS, entries

import tallow as tl
from tallow import transformers as tf
from tallow.errors import ArgumentError
from tallow.models.vision.assignment import cheapest_assignment

RANDOM = np.random.default_rng(5)
SIZES = (3, 1)  # objects of each picture
KINDS = [RANDOM.integers(0, 5, size) for size in SIZES]
BOXES = [RANDOM.uniform(0.2, 0.5, (size, 4)).astype(np.float32) for size in SIZES]
MASKS = [(RANDOM.random((size, *sides)) > 0.6) for size, sides in zip(SIZES, ((30, 17), (22, 25)), strict=True)]


def labels_of(torch: Any) -> list[dict[str, Any]]:
    names = ("class_labels", "boxes", "masks")
    return [
        {name: torch.tensor(value) for name, value in zip(names, own, strict=True)}
        for own in zip(KINDS, BOXES, MASKS, strict=True)
    ]


@pytest.mark.parametrize("auxiliary_loss", [False, True])
@pytest.mark.parametrize("name", ["DetrForObjectDetection", "DetrForSegmentation"])
def test_losses(name: str, auxiliary_loss: bool, folders: Folders) -> None:
    folder = folders(name)

    def program(tf: Any, torch: Any) -> Any:
        model = getattr(tf, name).from_pretrained(folder, auxiliary_loss=auxiliary_loss)
        mask = np.ones((2, 24, 24), np.int64)
        mask[1, 17:] = mask[1, :, 12:] = 0
        result = model(torch.tensor(PIXELS), torch.tensor(mask), labels=labels_of(torch))
        result.loss.backward()
        result.loss_dict = dict(sorted(result.loss_dict.items()))
        detector = getattr(model, "detr", model)
        grads = [detector.bbox_predictor.layers[0].weight.grad, detector.model.input_projection.weight.grad]
        eyes = next(p.grad for key, p in model.named_parameters() if "embedder.convolution" in key)
        return [entries(result), grads, eyes]

    both(program, tol=2e-4)


def test_assignments_are_the_cheapest() -> None:
    optimize = pytest.importorskip("scipy.optimize")
    for shape in ((1, 1), (5, 9), (9, 5), (40, 40), (0, 4)):
        costs = np.random.default_rng(sum(shape)).normal(size=shape)
        expected = optimize.linear_sum_assignment(costs)
        for ours, theirs in zip(cheapest_assignment(costs), expected, strict=True):
            np.testing.assert_array_equal(ours, theirs)
    rows, columns = cheapest_assignment(np.full((3, 3), np.finfo(np.float32).max))
    assert sorted(columns) == list(rows) == [0, 1, 2]


def test_labels_that_do_not_fit_are_refused(folders: Folders) -> None:
    model = tf.DetrForObjectDetection.from_pretrained(folders("DetrForObjectDetection"))
    for labels in ([], [{"boxes": tl.zeros(1, 4)}] * 2, [{"boxes": tl.zeros(1, 4), "class_labels": tl.zeros(2)}] * 2):
        with pytest.raises(ArgumentError, match="labels of"):
            model(tl.tensor(PIXELS), labels=labels)
