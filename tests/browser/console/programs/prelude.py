"""Functions that the programs of this folder share. Both run unchanged in the console and on PyTorch."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import torch

if "tallow" not in torch.__version__:
    # torchvision's own library is linked to PyTorch for CUDA: declare the ops that it describes at import.
    library = torch.library.Library("torchvision", "DEF")
    for op in ("nms", "qnms"):
        library.define(f"{op}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")


def image(*shape: int) -> torch.Tensor:
    """Return normal values, the same in each run."""
    return torch.from_numpy(np.random.RandomState(1).standard_normal(shape).astype("float32"))


def filled(model: Any) -> Any:
    """Return a model with weights of NumPy, in evaluation mode."""
    rng = np.random.RandomState(0)
    with torch.no_grad():
        for name, tensor in sorted(model.state_dict().items()):
            if tensor.is_floating_point():
                values = rng.standard_normal(tuple(tensor.shape)) / np.sqrt(max(1, tensor[:1].numel()))
                tensor.copy_(torch.from_numpy(np.abs(values) + 0.5 if "var" in name else values))
    return model.eval()


def trained(model: Any, output: torch.Tensor) -> list[torch.Tensor]:
    """Return an output and the gradients of the mean of its squares."""
    output.square().mean().backward()
    return [output, *(p.grad for _, p in sorted(model.named_parameters()) if p.grad is not None)]


def show(*numbers: Any) -> None:
    """Print numbers, and the norms of tensors."""
    print(json.dumps([float(torch.as_tensor(each).detach().double().norm()) for each in numbers]))
