"""Mutate the shapes of op cases and compare tallow and PyTorch: values, gradients, and whether they raise."""

from __future__ import annotations

import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from cases import Case, Input

import tallow as tl

SIZES = (0, 1, 2, 3)
Choose = Callable[[Sequence[Any]], Any]  # picks one of several: drawn by hypothesis or by a random generator

# Ops compared with a formula, which accepts shapes that the op rejects.
FORMULAS = {"gelu_mul", "silu_mul", "rotary", "quantized_linear", "scaled_mask"}
FORMULAS |= {"gru_steps", "lstm_steps", "rnn_steps"}  # PyTorch functions that check less than the layers that call them

# Ops that check their arguments where PyTorch accepts anything because the result has no elements.
STRICT_IF_EMPTY = {
    "div",
    "embedding_bag",
    "floor_divide",
    "fmod",
    "index_add",
    "index_copy",
    "index_fill",
    "index_put",
    "linalg_tensorsolve",
    "multi_head_attention_forward",
    "roll",
    "take_at",
}

# Ops for which PyTorch 2.13 is not a reference for some shapes, with the reason. If the reason starts with "empty",
# these are inputs without elements; the others are compared for the case's own shapes only.
UNRELIABLE = {
    "adaptive_avg_pool": "one mean of each channel is taken of any number of dims",
    "addbmm": "the in-place form widens its operand",
    "addmv": "empty: the operand's shape is not checked",
    "avg_pool": "padding does not count for the least size of three dims",
    "batch_norm_in_evaluation": "empty: of weight and bias the first element is used",
    "batch_norm_in_training": "empty: as batch_norm_in_evaluation",
    "bilinear": "empty: reshape cannot tell the sizes",
    "cat": "empty: block_diag returns another block's gradient",
    "clone": "empty: strides, which nothing reads",
    "conv1d": "empty: no input channels make no output channels",
    "conv2d": "empty: as conv1d",
    "conv3d": "empty: as conv1d",
    "conv_transpose1d": "empty: as conv1d",
    "conv_transpose2d": "empty: as conv1d",
    "conv_transpose3d": "empty: as conv1d",
    "cov": "weights of one observation are written to",
    "cholesky_solve": "singular factors give infinity, where tallow raises",
    "ctc": "labels outside of the classes are read from other memory, and lengths are not checked",
    "embedding_bag": "crashes on offsets that are no vector",
    "gradient": "positions are not checked against the samples",
    "group_norm": "empty: the weight's gradient is NaN",
    "instance_norm": "empty: as batch_norm_in_evaluation",
    "kthvalue": "which of equal elements is chosen is open",
    "linalg_eig": "eigenvalues may be complex",
    "linalg_eigvals": "eigenvalues may be complex",
    "linalg_eigh": "eigenvectors of equal eigenvalues are not unique",
    "linalg_lstsq": "empty: residuals are 0",
    "median_of_all": "empty: the median of no integers is the least integer",
    "multi_margin": "empty: the mean over nothing is not initialized",
    "multilabel_margin": "empty: targets are not checked",
    "nanmedian_of_all": "empty: as median_of_all",
    "pad": "a circular pad that cuts returns memory that is not initialized",
    "pdist": "crashes on no rows",
    "pixel_shuffle": "empty: shapes are not checked",
    "pixel_unshuffle": "empty: shapes are not checked",
    "scaled_dot_product_attention": "empty: shapes are not checked",
    "scatter_reduce": "gradients of source elements that have no index are not zero",
    "searchsorted": "sequences that are not sorted have no answer",
    "take_along_dim": "indices that broadcasting repeats may lie outside",
}


def mutate(case: Case, choose: Choose) -> list[Input]:
    """Return inputs of a case with other shapes: sizes replaced consistently, sometimes one input broadcast or cut."""
    sizes = sorted({n for a in case.inputs for n in a.shape})
    new_sizes = {n: choose((n, n, *SIZES)) for n in sizes}
    shapes = [tuple(new_sizes[n] for n in a.shape) for a in case.inputs]
    if shapes and choose((True, True, False)):
        i = choose(range(len(shapes)))
        shapes[i] = _change_shape(shapes[i], choose)
    within = choose((True, False))  # whether to bring indices within the smaller sizes
    return [_resize(a, shape, within) for a, shape in zip(case.inputs, shapes, strict=True)]


def _change_shape(shape: tuple[int, ...], choose: Choose) -> tuple[int, ...]:
    """Return a shape that may broadcast or have another number of dimensions."""
    if not shape or choose((False, False, False, True)):
        return choose(((1, *shape), (2, *shape), (0, *shape), (*shape, 1)))
    if choose((False, False, True)):
        return choose((shape[1:], shape[:-1], ()))
    at = choose(range(len(shape)))
    return (*shape[:at], choose((1, 1, *SIZES)), *shape[at + 1 :])


def _resize(a: Input, shape: tuple[int, ...], within: bool) -> Input:
    """Return the elements of `a` in another shape, repeated as needed; repeated floats are scaled to avoid ties."""
    size = int(np.prod(shape))
    if not a.size:
        return np.ones(shape, a.dtype)
    values = np.resize(a, size)
    if a.dtype.kind == "f" and (a != np.round(a)).any():
        values = values * (1 - 0.01 * (np.arange(size) // a.size))
    if a.dtype.kind == "i" and within:
        values = np.where(values >= 0, values % max(1, min(shape, default=1)), values)
    return np.ascontiguousarray(values.reshape(shape)).reshape(shape)


@dataclass
class Outcome:
    """The result of a call: outputs, and gradients unless backward failed, or the exception it raised."""

    outputs: list[Any] = field(default_factory=list)
    gradients: list[Any] | None = None
    error: Exception | None = None

    @property
    def raised_by_case(self) -> bool:
        """Return whether the case's own code raised while unpacking its inputs, rather than a library function."""
        frames = traceback.extract_tb(self.error.__traceback__) if self.error else []
        return bool(frames) and "cases" in frames[-1].filename

    @property
    def is_empty(self) -> bool:
        """Return whether no returned tensor has elements."""
        shapes = [tuple(y.shape) for y in self.outputs if isinstance(y, torch.Tensor | tl.Tensor)]
        return not self.error and bool(shapes) and all(0 in shape for shape in shapes)

    def __str__(self) -> str:
        return f"raises {self.error!r:.300}" if self.error else f"returns {self.outputs!r:.300}"


def disagreement(case: Case, inputs: list[Input]) -> str | None:
    """Describe how tallow and PyTorch differ for a call. Return None if they agree."""
    theirs, ours = _outcome(torch, case, inputs), _outcome(tl, case, inputs)
    if theirs.raised_by_case and type(theirs.error) is type(ours.error):
        return None
    is_empty = any(not a.size for a in inputs)
    if case.op in UNRELIABLE and is_empty and UNRELIABLE[case.op].startswith("empty"):
        return None
    if theirs.error and is_empty and ours.is_empty:
        return None  # no wrong values
    if case.op in STRICT_IF_EMPTY and isinstance(ours.error, tl.errors.TallowError) and theirs.is_empty:
        return None
    if theirs.error:
        return None if isinstance(ours.error, tl.errors.TallowError) else f"PyTorch {theirs}; tallow {ours}"
    if ours.error:
        return f"tallow {ours}; PyTorch {theirs}"
    if difference := _difference("outputs", ours.outputs, theirs.outputs, case, is_empty):
        return difference
    if theirs.gradients is None or not case.grad:
        return None
    if ours.gradients is None:
        return "tallow raises in backward"
    return _difference("gradients", ours.gradients, theirs.gradients, case, is_empty)


def _outcome(m: Any, case: Case, arrays: list[Input]) -> Outcome:
    inputs = [m.tensor(a) for a in arrays]
    for t in inputs:
        if case.grad and t.is_floating_point():
            t.requires_grad_()
    m.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            outcome = Outcome(list(_leaves(case.call(m, *inputs))))
        except Exception as error:
            return Outcome(error=error)
        ys = [y for y in outcome.outputs if isinstance(y, m.Tensor) and y.requires_grad]
        rng = np.random.default_rng(1)
        gs = [m.tensor(rng.standard_normal(tuple(y.shape)), dtype=y.dtype) for y in ys]
        try:
            if case.grad and ys:
                m.autograd.backward(ys, gs)
        except Exception:
            return outcome
    floats = [t for t in inputs if t.is_floating_point()]
    outcome.gradients = [m.zeros_like(t) if t.grad is None else t.grad for t in floats]
    return outcome


def _leaves(result: Any) -> Iterator[Any]:
    if isinstance(result, list | tuple):
        for item in result:
            yield from _leaves(item)
    else:
        yield result


def _difference(what: str, ours: list[Any], theirs: list[Any], case: Case, is_empty: bool) -> str | None:
    if len(ours) != len(theirs):
        return f"{what}: {len(ours)} instead of {len(theirs)}"
    for i, (y, expected) in enumerate(zip(ours, theirs, strict=True)):
        if difference := _value_difference(y, expected, case, is_empty):
            return f"{what}[{i}]: {difference}"
    return None


def _value_difference(y: Any, expected: Any, case: Case, is_empty: bool) -> str | None:
    single = {"rtol": 10 * case.rtol, "atol": 10 * case.atol}
    if not isinstance(expected, torch.Tensor):
        if y == expected or str(y).replace("tallow", "torch") == str(expected):
            return None
        is_close = isinstance(y, float) and np.isclose(y, expected, **single, equal_nan=True)
        return None if is_close else f"{y!r} instead of {expected!r}"
    if str(y.dtype).removeprefix("tallow.") != str(expected.dtype).removeprefix("torch."):
        return f"{y.dtype} instead of {expected.dtype}"
    if tuple(y.shape) != tuple(expected.shape):
        return f"shape {tuple(y.shape)} instead of {tuple(expected.shape)}"
    if y.requires_grad != expected.requires_grad and not is_empty:
        return f"requires_grad is {y.requires_grad} instead of {expected.requires_grad}"
    is_double = expected.dtype == torch.float64 and case.rtol <= 1e-5
    tolerance = {"rtol": 10 * case.rtol64, "atol": 1e-9} if is_double else single
    a, b = y.detach().numpy(), expected.numpy(force=True)
    return None if np.allclose(a, b, **tolerance, equal_nan=True) else f"{a!r:.300} instead of {b!r:.300}"
