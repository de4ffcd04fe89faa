"""The parts that all cases of packages use: their table, weights of NumPy, and the results that are compared."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

RTOL = 2e-4  # float32 through dozens of layers
NOISE = 1e-7
Case = Callable[[Any, np.random.RandomState], list[Any]]
CASES: dict[str, Case] = {}  # PACKAGE, or PACKAGE__SUBJECT


def case(function: Case) -> Case:
    """File a case under the function's name. The docstring says what it computes."""
    CASES[function.__name__] = function
    return function


def filled(torch: Any, model: Any, rng: np.random.RandomState) -> Any:
    """Set the weights and statistics of a model in evaluation mode, whose results stay small."""
    with torch.no_grad():
        for name, tensor in sorted(model.state_dict().items()):
            if not tensor.is_floating_point() or not tensor.numel():
                continue
            values = rng.standard_normal(tuple(tensor.shape)).astype("float32")
            if "var" in name:
                values = np.abs(values) + 0.5
            elif values.ndim > 1:
                values /= np.sqrt(values[0].size)
            else:
                values = 0.1 * values + ("weight" in name)
            tensor.copy_(torch.from_numpy(np.asarray(values, dtype="float32")))
    return model.eval()


def trained(torch: Any, model: Any, compute: Callable[[], Any], lr: float = 0.01) -> list[Any]:
    """Return the output of a model, the gradient of each parameter, and the output after a step of SGD."""
    output = compute()
    (output if output.ndim == 0 else output.square().mean()).backward()
    parameters = [p for _, p in sorted(model.named_parameters()) if p.grad is not None]
    gradients = [p.grad.clone() for p in parameters]
    torch.optim.SGD(parameters, lr=lr).step()
    return [output, *gradients, compute()]


def normal(torch: Any, rng: np.random.RandomState, *shape: int) -> Any:
    """Return normal values."""
    return torch.from_numpy(rng.standard_normal(shape).astype("float32"))


def tokens(torch: Any, rng: np.random.RandomState, high: int, *shape: int) -> Any:
    """Return integers below `high`."""
    return torch.from_numpy(rng.randint(0, high, shape))


def arrays(values: Iterable[Any]) -> list[np.ndarray[Any, Any]]:
    """Return tensors, numbers and lists as arrays."""
    return [np.asarray(value.detach().resolve_conj() if hasattr(value, "detach") else value) for value in values]


def difference(expected: Path, found: Path, name: str) -> str | None:
    """Return how the results of a case in two folders differ, or None.

    Each array agrees to `RTOL` of its own largest element. One that is zero up to rounding in exact arithmetic, such as
    the gradient of a bias that softmax cancels, is measured by the largest element of them all.
    """
    for folder in (expected, found):
        if not (folder / f"{name}.npz").exists():
            reason = folder / f"{name}.txt"
            return reason.read_text(encoding="utf-8") if reason.exists() else "the process ended"
    mine, theirs = (list(np.load(folder / f"{name}.npz").values()) for folder in (found, expected))
    if [value.shape for value in mine] != [value.shape for value in theirs]:
        return f"shapes {[value.shape for value in mine]} for {[value.shape for value in theirs]}"
    sizes = [float(np.abs(value).max(initial=0)) for value in theirs]
    for i, (a, b) in enumerate(zip(mine, theirs, strict=True)):
        if not np.isfinite(b).all():
            return f"array {i} of PyTorch is not finite: the case says nothing"
        bound = RTOL * sizes[i] + NOISE * max(sizes)
        if not np.allclose(a, b, rtol=0, atol=bound):
            error = float(np.abs(np.subtract(a, b, dtype=np.result_type(a, b, np.float32))).max())
            return f"array {i} differs by {error:.3g}; its largest element is {sizes[i]:.3g}"
    return None
