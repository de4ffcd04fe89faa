"""Complex numbers in ops: which ones take them, and where their gradients are conjugated.

The gradient of a complex operand is the conjugate of the Wirtinger derivative, as in PyTorch: of a holomorphic function
f it is g · conj(f'). The closures of ops know nothing of that. They multiply g by the derivative, or by the transpose
of a matrix of derivatives, as for real numbers; and

    g · conj(f') = conj(conj(g) · f')

so the recorder wraps a closure in `Conjugated`, which conjugates what goes in and what comes out. It does so only where
a number is complex: the closures of real ops are recorded as they are. The gradient of a real operand is the real part,
which the engine takes where it fits a gradient to its operand.

An op in `OWN` is not holomorphic, as the absolute value, or is real-linear: its closure computes the conjugated
gradient itself. An op in `REFUSED` has no meaning for complex numbers, or PyTorch has no code for it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any

from tallow.dtypes import Array

_OWN = """
    abs adjoint_map angle cholesky_solve complex_of conjugate fft_of_real fft_to_real imag_of linalg_cholesky
    linalg_eig linalg_eigh linalg_eigvals linalg_eigvalsh linalg_pinv linalg_qr linalg_slogdet linalg_svd
    linalg_svdvals linalg_vector_norm real_of sgn softsign spectra_of_frames std to_dtype var view_as_complex
    view_as_real
"""
OWN = frozenset(_OWN.split())
_REFUSED = """
    absolute_error adaptive_avg_pool adaptive_max_pool amax amin aminmax argmax argmin argsort atan2 avg_pool
    batch_norm_in_evaluation batch_norm_in_training bilinear binary_cross_entropy binary_cross_entropy_with_logits
    bitwise_and bitwise_left_shift bitwise_not bitwise_or bitwise_right_shift bitwise_xor bucketize cdist ceil celu
    clamp clamp_max clamp_min copysign cross_entropy_of_classes ctc cummax cummin deg2rad digamma distances elu
    embedding_bag entr erf erfc erfinv floor floor_divide fmax fmin fmod frac frexp gcd ge gelu gelu_mul glu
    grid_sample group_norm gru_steps gt hardshrink hardsigmoid hardswish hardtanh heaviside histc huber_error hypot
    isin isneginf isposinf kl_divergence kthvalue layer_norm lcm le leaky_relu lgamma
    log_softmax logaddexp2 logit logsigmoid lstm_steps lt max_along max_pool max_pool_with_indices max_unpool
    maximum median_along median_of_all min_along minimum mish mode multi_margin multilabel_margin nan_to_num nanmean
    nanmedian_along nanmedian_of_all nanquantile nansum nextafter nll_loss_of_classes polygamma prelu quantile
    rad2deg relu relu6 remainder resample rnn_steps rotary round scaled_dot_product_attention scaled_mask
    scatter_reduce searchsorted selu sign signbit silu_mul softmax softplus softshrink sort squared_error
    threshold topk trunc unique unique_consecutive xlogy
"""
REFUSED = frozenset(_REFUSED.split())


def conj(x: Any) -> Any:
    """Return the complex conjugate of an array; a real array itself."""
    return x.conj() if x.dtype.kind == "c" else x


class Conjugated:
    """The closure of an op on complex numbers: conjugates the gradients of the outputs, and those of the operands.

    Attributes:
        closure: of the op.
    """

    __slots__ = ("closure",)

    def __init__(self, closure: Callable[..., tuple[Any, ...]]) -> None:
        self.closure = closure

    def __call__(self, *gs: Array | None) -> tuple[Any, ...]:
        results = self.closure(*[None if g is None else conj(g) for g in gs])
        return tuple([_conjugated(result) for result in results])


def _conjugated(result: Any) -> Any:
    if result is None:
        return None
    if type(result) is not FunctionType:
        return conj(result)

    def computed_later() -> Any:
        g = result()
        return None if g is None else conj(g)

    computed_later.__wrapped__ = result  # type: ignore[attr-defined]  # `tape.saved` reads its variables
    return computed_later


def recorded_closure(name: str, closure: Callable[..., Any], arrays: Sequence[Array | None]) -> Callable[..., Any]:
    """Return what is recorded for the op `name`: its closure, conjugated if any of the arrays is complex."""
    for array in arrays:  # a generator takes longer
        if array is not None and array.dtype.kind == "c":
            return closure if name in OWN else Conjugated(closure)
    return closure


def softsign_gradient(g: Array, z: Array, size: Array) -> Array:
    """Return the gradient of z / (1 + |z|):  g / (1 + r) - z Re(conj(g) z) / (r (1 + r)²)  for complex z, r = |z|."""
    if z.dtype.kind != "c":
        return g / (1 + size) ** 2
    along = (conj(g) * z).real / (size + (size == 0))
    return g / (1 + size) - z * (along / (1 + size) ** 2)
