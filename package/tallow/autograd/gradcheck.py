"""Check gradients against central differences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tallow import devices
from tallow.autograd.api import grad
from tallow.dtypes import Array, dtype_of
from tallow.errors import ArgumentTypeError, GraphError
from tallow.tape.modes import enable_grad


class GradcheckError(GraphError):
    """Gradients that differ from central differences."""


def gradcheck(
    func: Callable[..., Any],
    inputs: Any,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
) -> bool:
    """Compare gradients with central differences, for every output element by every input element.

    Args:
        inputs: tensors; those that require grad must be float64 or complex128 (in float32 the differences are rounding
            noise). The real and imaginary parts of complex numbers are compared as elements of their own.
        raise_exception: raise where the gradients differ; otherwise return False.

    Raises: GradcheckError with both Jacobians where they differ by more than atol + rtol · |numeric|.
    """
    inputs = _tuple(inputs)
    checked = [t for t in inputs if getattr(t, "_requires_grad", False)]
    for t in checked:
        if t.array.dtype not in (np.float64, np.complex128):
            raise ArgumentTypeError(
                f"gradcheck: inputs must be float64 or complex128, got {dtype_of(t.array)}",
                hint="convert with .double() or .cdouble()",
            )
    outputs = [y for y in _tuple(func(*inputs)) if y._requires_grad]
    if not outputs:
        raise GradcheckError("gradcheck: no output requires grad")
    for which, y in enumerate(outputs):
        seed = np.zeros(y.array.shape, np.complex128 if y.array.dtype.kind == "c" else np.float64)
        flat_g = _reals(seed)
        analytic: list[list[Array]] = [[] for _ in checked]
        for j in range(flat_g.size):
            flat_g[:] = 0
            flat_g[j] = 1
            g = devices.move(seed.copy(), devices.device_of(y.array))
            grads = grad(y, checked, y._like(g), retain_graph=True, allow_unused=True)
            for rows, t, gi in zip(analytic, checked, grads, strict=True):
                found = np.zeros(t.array.shape, t.array.dtype) if gi is None else devices.to_host(gi.array)
                rows.append(_reals(found))
        for i, t in enumerate(checked):
            numeric = _numeric_jacobian(func, inputs, t, which, eps)
            if not np.allclose(np.asarray(analytic[i]).T, numeric, rtol=rtol, atol=atol):
                if not raise_exception:
                    return False
                worst = np.abs(np.asarray(analytic[i]).T - numeric).max()
                raise GradcheckError(
                    f"gradcheck: Jacobian of output {which} by input {i} differs by up to {worst:.3g}\n"
                    f"numeric:\n{numeric}\nanalytic:\n{np.asarray(analytic[i]).T}"
                )
    return True


def gradgradcheck(
    func: Callable[..., Any],
    inputs: Any,
    grad_outputs: Any = None,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
) -> bool:
    """Compare gradients of gradients with central differences of the gradients, as `gradcheck` does.

    Args:
        inputs: tensors; those that require grad must be float64 or complex128.
        grad_outputs: gradients of the outputs; random numbers by default.
        raise_exception: raise where the gradients differ; otherwise return False.

    Raises: GradcheckError where they differ by more than atol + rtol · |numeric|.
    """
    inputs = _tuple(inputs)
    if grad_outputs is None:
        outputs = [y for y in _tuple(func(*inputs)) if y._requires_grad]
        seeds = [y.detach().new_empty(y.shape).normal_().requires_grad_() for y in outputs]
    else:
        seeds = list(_tuple(grad_outputs))

    def gradients(*args: Any) -> tuple[Any, ...]:
        given = args[: len(inputs)]
        by = [x for x in given if getattr(x, "_requires_grad", False)]
        results = [y for y in _tuple(func(*given)) if y._requires_grad]
        found = grad(results, by, list(args[len(inputs) :]), create_graph=True, allow_unused=True)
        return tuple(g for g in found if g is not None)

    return gradcheck(gradients, (*inputs, *seeds), eps, atol, rtol, raise_exception)


def _tuple(value: Any) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, list | tuple) else (value,)


def _reals(array: Array) -> Array:
    """Return the elements in one dim, complex ones as real and imaginary parts; a view if the array is contiguous."""
    return np.ascontiguousarray(array).reshape(-1).view(np.float64)


def _numeric_jacobian(func: Callable[..., Any], inputs: tuple[Any, ...], t: Any, which: int, eps: float) -> Array:
    """Return the Jacobian by central differences. Rows: elements of `t`; columns: those of output number `which`."""
    rows = []
    parts = (1, 1j) if t.array.dtype.kind == "c" else (1,)
    for i in range(t.array.size):
        index = np.unravel_index(i, t.array.shape)
        original = t.array[index].copy()
        for part in parts:
            sides = []
            for step in (eps * part, -eps * part):
                t.array[index] = original + step
                with enable_grad():
                    ys = [y for y in _tuple(func(*inputs)) if y._requires_grad]
                y = devices.to_host(ys[which].array)
                sides.append(_reals(y.astype(np.complex128 if y.dtype.kind == "c" else np.float64)))
            rows.append((sides[0] - sides[1]) / (2 * eps))
        t.array[index] = original
    return np.asarray(rows).reshape(t.array.size * len(parts), -1)
