"""Outputs of tallow models in a comparable form."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

import tallow as tl


def outputs_of(model: Any, inputs: Mapping[str, npt.NDArray[np.int64]]) -> list[npt.NDArray[np.float32]]:
    """Return all outputs of a model for the inputs, in float32."""
    with tl.no_grad():
        outputs = model(*(tl.as_tensor(array) for array in inputs.values()))
    outputs = [outputs] if isinstance(outputs, tl.Tensor) else outputs
    return [output.float().numpy() for output in outputs if output is not None]


def without_padding(
    outputs: Sequence[npt.NDArray[np.float32]], inputs: Mapping[str, npt.NDArray[np.int64]]
) -> list[npt.NDArray[np.float32]]:
    """Return outputs without the positions of padding; outputs per text are unchanged."""
    if "attention_mask" not in inputs:
        return list(outputs)
    text = inputs["attention_mask"].astype(bool)
    return [array[text] if array.shape[:2] == text.shape else array for array in outputs]
