"""Measure how much each column of a model's matrices matters for quantisation: the mean square of its inputs.

An error in a column is multiplied by the input of the column. Quantisation that weighs errors by the mean square of
the inputs keeps the outputs of a layer closer to those of the original.

Source:  llama.cpp's `tools/imatrix`
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tallow.core.creation import tensor
from tallow.dtypes import Array, widen
from tallow.errors import ArgumentError
from tallow.models.causal_lm import CausalLM
from tallow.models.gguf.export import file_name
from tallow.models.gguf.settings import names_of
from tallow.nn.block_layers import BlockLinear
from tallow.nn.linear import Linear
from tallow.nn.module import Module
from tallow.nn.transposed_linear import Conv1D
from tallow.tape.modes import no_grad

WINDOW = 512  # tokens of a forward pass, as in llama.cpp


class _Sums:
    """The sums of the squares of inputs, by the name of the matrix in the file."""

    def __init__(self) -> None:
        self.squares: dict[str, Array] = {}
        self.counts: dict[str, int] = {}

    def watch(self, name: str) -> Any:
        """Return a hook that adds the inputs of the layer with this matrix."""

        def hook(module: Module, arguments: tuple[Any, ...]) -> None:
            x = widen(arguments[0].detach().cpu().array)
            rows = x.reshape(-1, x.shape[-1]).astype(np.float64)
            self.squares[name] = self.squares.get(name, np.float64(0)) + (rows * rows).sum(axis=0)
            self.counts[name] = self.counts.get(name, 0) + len(rows)

        return hook


def importance_of(
    model: CausalLM, ids: Sequence[int], *, progress: Callable[[int, int], None] | None = None
) -> dict[str, Array]:
    """Return the importance of the columns of each linear layer, by the name of its matrix in a GGUF file.

    Args:    ids: the tokens of a text, which is divided into windows of the model's context, at most 512 tokens.
        progress: called with the number of tokens read and the number of all tokens.

    Shapes:  importance (in_features,) float32 for each matrix
    Raises:  ArgumentError for an empty text
    """
    if not len(ids):
        raise ArgumentError("the text has no tokens", hint="pass a text like those that the model will read")
    sums, names = _Sums(), names_of(model)
    hooks = [
        module.register_forward_pre_hook(sums.watch(file_name(f"{path}.weight", names)))
        for path, module in model.named_modules()
        if isinstance(module, Linear | Conv1D | BlockLinear)
    ]
    window = min(WINDOW, model.context_length)
    try:
        with no_grad():
            for start in range(0, len(ids), window):
                part = list(ids[start : start + window])
                model(tensor([part]))
                if progress is not None:
                    progress(start + len(part), len(ids))
    finally:
        for hook in hooks:
            hook.remove()
    return {name: (sums.squares[name] / sums.counts[name]).astype(np.float32) for name in sums.squares}
