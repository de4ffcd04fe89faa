"""The rules of `autocast`: which ops compute in lower precision, and which always in float32."""

from __future__ import annotations

from typing import Any

from tallow import devices, dtypes
from tallow.core.arguments import Prepared
from tallow.core.tensor import Tensor
from tallow.dtypes import dtype
from tallow.ops.table import Op

# Matrix products: much faster in low precision, at little cost in accuracy.
_PRODUCTS = (
    "addbmm addmm baddbmm bmm conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d gru_steps linear "
    "lstm_steps matmul mm rnn_steps scaled_dot_product_attention"
)
# Losses, and ops that lose accuracy by summing many numbers or by cancellation.
_FLOAT32 = (
    "absolute_error binary_cross_entropy binary_cross_entropy_with_logits cdist cholesky_solve "
    "cross_entropy_of_classes ctc grid_sample huber_error kl_divergence linalg_cholesky linalg_det linalg_eig "
    "linalg_eigh linalg_eigvals linalg_eigvalsh linalg_inv linalg_pinv linalg_qr linalg_slogdet linalg_solve "
    "linalg_solve_triangular linalg_svd linalg_svdvals lu_factor multi_margin multilabel_margin nanquantile "
    "nll_loss_of_classes prod quantile squared_error"
)
# PyTorch keeps these in float32 on a GPU only.
_FLOAT32_ON_CUDA = (
    "acos asin cosh cumprod cumsum distance erfinv exp expm1 group_norm layer_norm linalg_vector_norm log log10 log1p "
    "log2 log_softmax logsumexp pow reciprocal rms_norm rsqrt sinh softmax softplus sum tan"
)
# Ops of these lists whose CUDA kernels read halves and compute in float32: widening the operand first would be three
# times the memory traffic. Their results stay in float32.
_READ_AS_HALVES_ON_CUDA = frozenset(("cross_entropy_of_classes",))
LOWERED = frozenset(_PRODUCTS.split())
FLOAT32_ON = {
    "cpu": frozenset(_FLOAT32.split()),
    "cuda": frozenset(_FLOAT32.split() + _FLOAT32_ON_CUDA.split()) - _READ_AS_HALVES_ON_CUDA,
}


def prepare(lower: dict[str, dtype], op: Op, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Prepared:
    """Unpack the arguments of an op, with operands cast by the rules. `lower` as for `_cast_operands`."""
    ready = Prepared(op, *_cast_operands(lower, op, args, kwargs))
    if op.name in _READ_AS_HALVES_ON_CUDA and devices.device_type_of(ready.call[0]) in lower:
        ready.half = None
    return ready


def _cast_operands(lower: dict[str, dtype], op: Op, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Cast the operands of an op by the rules. Return (args, kwargs).

    For an op in neither list, operands of several float dtypes are converted to float32 if the op does not promote.

    Args:
        lower: device type -> the dtype that autocast lowers to there; other devices are not affected.
    """
    call, rest = op.bind(args, kwargs)
    operands = [call[i] for i, _ in op.operands if i < len(call)]
    flat = [t for x in operands for t in (x if isinstance(x, list | tuple) else (x,)) if _is_eligible(t)]
    if not flat:
        return args, kwargs
    device = devices.device_type_of(flat[0].array)
    if device not in lower:
        return args, kwargs
    if op.name in LOWERED:
        target = lower[device]
    elif op.name in FLOAT32_ON[device] or (op.dtypes == "same" and len({t.dtype for t in flat}) > 1):
        target = dtypes.float32
    else:
        return args, kwargs
    for i, _ in op.operands:
        if i < len(call):
            x = call[i]
            call[i] = type(x)(_cast(t, target) for t in x) if isinstance(x, list | tuple) else _cast(x, target)
    return tuple(call), rest


def _is_eligible(x: Any) -> bool:
    return isinstance(x, Tensor) and x.is_floating_point() and x.dtype is not dtypes.float64


def _cast(x: Any, target: dtype) -> Any:
    return x.to(target) if _is_eligible(x) else x
