"""Run a program under PyTorch or tallow with the same random numbers: `harness.py {torch,tallow} PROGRAM [args]`.

The libraries draw different values for the same seed. Here both draw from NumPy while a program runs; initial weights
come from a file.
"""

from __future__ import annotations

import importlib
import runpy
import sys
from pathlib import Path
from typing import Any

import numpy as np

PROGRAMS = sorted(path.stem for path in (Path(__file__).parent / "programs").glob("*.py"))


def draw_from_numpy(torch: Any, seed: int = 0) -> None:
    """Replace the functions that draw random values by ones that draw from NumPy."""
    rng = np.random.RandomState(seed)
    functional, distributions = (importlib.import_module(f"torch.{n}") for n in ("nn.functional", "distributions"))

    def tensor_of(array: Any) -> Any:
        return torch.as_tensor(np.ascontiguousarray(array))

    def randn(*size: Any, **options: Any) -> Any:
        shape = size[0] if size and isinstance(size[0], tuple | list) else size
        return tensor_of(rng.standard_normal(tuple(shape)).astype(np.float32))

    def randint(*bounds: Any, size: Any = None, **options: Any) -> Any:
        *limits, size = bounds if size is None else (*bounds, size)
        return tensor_of(rng.randint(*limits, size=tuple(size)).astype(np.int64))

    def multinomial(weights: Any, num_samples: int, replacement: bool = False, **options: Any) -> Any:
        rows = weights.detach().numpy().reshape(-1, weights.shape[-1]).astype(np.float64)
        samples = [[int((rng.rand() < row.cumsum() / row.sum()).argmax()) for _ in range(num_samples)] for row in rows]
        return torch.tensor(samples).reshape(*weights.shape[:-1], num_samples)

    def dropout(x: Any, p: float = 0.5, training: bool = True, inplace: bool = False, dims: int | None = None) -> Any:
        if not training or p == 0:
            return x
        shape = tuple(x.shape) if dims is None else (*x.shape[:dims], *(1,) * (x.ndim - dims))
        return x * tensor_of((rng.rand(*shape) >= p).astype(np.float32) / (1 - p))

    torch.randn, torch.randint, torch.multinomial = randn, randint, multinomial
    torch.randn_like = lambda x, **options: randn(*x.shape)
    functional.dropout = dropout
    functional.dropout2d = lambda *args, **options: dropout(*args, **options, dims=2)
    distributions.Categorical.sample = lambda self, shape=(): multinomial(self.probs, 1)[..., 0]
    distributions.Normal.rsample = lambda self, shape=(): self.loc + randn(*self._extended_shape(shape)) * self.scale


def run(program: str, *args: str) -> None:
    """Run a program of the folder `programs` with whatever `import torch` gives."""
    path = Path(__file__).parent / "programs" / f"{program}.py"
    before, sys.argv = sys.argv, [str(path), *args]
    try:
        runpy.run_path(str(path), run_name="__main__")
    finally:
        sys.argv = before


if __name__ == "__main__":
    module, program, *rest = sys.argv[1:]
    if module == "tallow":
        importlib.import_module("tallow.compat").install_torch()
    torch = importlib.import_module("torch")
    torch.manual_seed(0)  # the first weights: PyTorch starts from a random seed, and rounding grows with some weights
    draw_from_numpy(torch)
    run(program, *rest)
