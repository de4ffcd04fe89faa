"""PyTorch's names of recorded ops, such as MulBackward0 and AddmmBackward0.

A name follows from the op's by a rule. The tables have the ops that PyTorch's autograd calls otherwise; for some the
name depends on the call, as far as the sizes and the operands with gradients tell it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

Shape = tuple[int, ...]
Edges = Sequence[Any]


def name_of(op_name: str, shape: Shape, edges: Edges) -> str:
    """Return PyTorch's name for the node of an op.

    Args:
        op_name: name in the table of ops, of the in-place form with its underscore.
        shape: of the result.
        edges: an edge for each operand, None without a gradient.
    """
    plain = op_name.removesuffix("_")
    by_call = _BY_CALL.get(plain)
    stem = by_call(shape, edges) if by_call else _RENAMED.get(op_name) or _RENAMED.get(plain) or _camel(plain)
    stem, _, overload = stem.format(n=3 if len(shape) == 5 else 2).partition(" ")
    return f"{stem}Backward{overload or 0}"


def _camel(op_name: str) -> str:
    """Return max_pool2d_with_indices as MaxPool2DWithIndices."""
    words = "".join(word[:1].upper() + word[1:] for word in op_name.split("_"))
    return re.sub(r"\d[a-z]", lambda match: match[0].upper(), words)


# Each with the number of the overload if it is not 0. {n} is the number of axes besides batch and channels; PyTorch
# computes one axis as two.
_RENAMED = {
    "absolute_error": "Abs",
    "adaptive_avg_pool": "AdaptiveAvgPool{n}D",
    "adaptive_max_pool": "AdaptiveMaxPool{n}D",
    "as_view": "AsStrided",
    "avg_pool": "AvgPool{n}D",
    "batch_norm_in_evaluation": "NativeBatchNorm",
    "batch_norm_in_training": "NativeBatchNorm",
    "celu_": "Celu 1",
    "chunk": "Split",
    "complex_of": "Complex",
    "conjugate": "ConjPhysical",
    "conv1d": "Convolution",
    "conv2d": "Convolution",
    "conv3d": "Convolution",
    "conv_transpose1d": "Convolution",
    "conv_transpose2d": "Convolution",
    "conv_transpose3d": "Convolution",
    "ctc": "CtcLoss",
    "distance": "Pdist",
    "elu_": "Elu 1",
    "entr": "SpecialEntr",
    "erfcx": "SpecialErfcx",
    "fake_quantize": "FakeQuantizePerTensorAffineCachemask",
    "fft_complex": "FftC2C",
    "fft_of_real": "FftR2C",
    "fft_to_real": "FftC2R",
    "flatten": "View",
    "fold": "Col2Im",
    "grid_sample": "GridSampler{n}D",
    "group_norm": "NativeGroupNorm",
    "i0e": "SpecialI0E",
    "i1": "SpecialI1",
    "i1e": "SpecialI1E",
    "imag_of": "Select",
    "layer_norm": "NativeLayerNorm",
    "leaky_relu_": "LeakyRelu 1",
    "linalg_cholesky": "LinalgCholeskyEx",
    "linalg_eigvalsh": "LinalgEigh",
    "linalg_inv": "LinalgInvEx",
    "linalg_solve": "LinalgSolveEx",
    "linalg_svdvals": "LinalgSvd",
    "log_ndtr": "SpecialLogNdtr",
    "logsigmoid": "LogSigmoid",
    "lu_factor": "LinalgLuFactorEx",
    "max_along": "Max",
    "max_pool": "MaxPool{n}DWithIndices",
    "max_pool_with_indices": "MaxPool{n}DWithIndices",
    "max_unpool": "MaxUnpool{n}D",
    "median_along": "Median 1",
    "median_of_all": "Median",
    "min_along": "Min",
    "nanmean": "Div",
    "nanmedian_along": "Nanmedian 1",
    "nanmedian_of_all": "Nanmedian",
    "ndtri": "SpecialNdtri",
    "outer": "Mul",
    "pad": "ConstantPadNd",
    "prelu": "PreluKernel",
    "ravel": "View",
    "real_of": "Select",
    "relu6": "Hardtanh",
    "reshape": "View",
    "rms_norm": "Mul",
    "selu": "Elu",
    "selu_": "Elu 1",
    "softsign": "Div",
    "square": "Pow",
    "squeeze": "Squeeze 1",
    "take_at": "Index",
    "tanhshrink": "Sub",
    "tensor_split": "Slice",
    "threshold_": "Threshold 1",
    "to_dtype": "ToCopy",
    "true_divide": "Div",
    "unflatten": "View",
    "unfold": "Im2Col",
    "window_view": "Unfold",
    "xlog1py": "SpecialXlog1Py",
    "zeta": "SpecialZeta",
}
# Errors of elements. A sum or mean of them is a loss, which is one op in PyTorch.
_ERRORS = {
    "binary_cross_entropy": "BinaryCrossEntropy",
    "binary_cross_entropy_with_logits": "BinaryCrossEntropyWithLogits",
    "huber_error": "SmoothL1Loss",
    "multi_margin": "MultiMarginLoss",
    "multilabel_margin": "MultilabelMarginLoss",
    "squared_error": "MseLoss",
}
_RENAMED |= _ERRORS


def _reduction(name: str) -> Callable[[Shape, Edges], str]:
    def by_call(shape: Shape, edges: Edges) -> str:
        loss = None if shape or not edges else _ERRORS.get(getattr(edges[0], "op_name", ""))
        return loss or (f"{name} 1" if shape else name)

    return by_call


def _by_operands(name: str, alone: int, several: int) -> Callable[[Shape, Edges], str]:
    """Return a rule for ops with one overload for numbers as further operands, and one for tensors."""
    return lambda shape, edges: f"{name} {several if sum(e is not None for e in edges) > 1 else alone}"


def _getitem(shape: Shape, edges: Edges) -> str:
    axes = len(shape) - len(edges[0].shape) if edges else 0
    return "Select" if axes < 0 else "Unsqueeze" if axes > 0 else "Slice"


def _pow(shape: Shape, edges: Edges) -> str:
    base, exponent = edges or (True, None)
    return "Pow" if exponent is None else "Pow 2" if base is None else "Pow 1"


def _linear(shape: Shape, edges: Edges) -> str:
    biased = len(edges) > 2 and edges[2] is not None
    return ("View" if biased else "UnsafeView") if len(shape) > 2 else "Addmm" if biased else "Mm"


_BY_CALL: dict[str, Callable[[Shape, Edges], str]] = {
    "amax": lambda shape, edges: "Amax" if shape else "Max 1",
    "amin": lambda shape, edges: "Amin" if shape else "Min 1",
    "clamp": _by_operands("Clamp", 1, 0),
    "clamp_max": _by_operands("ClampMax", 0, 1),
    "clamp_min": _by_operands("ClampMin", 0, 1),
    "cross_entropy_of_classes": lambda shape, edges: "NllLoss2D" if len(shape) > 1 else "NllLoss",
    "fmod": _by_operands("Fmod", 0, 1),
    "getitem": _getitem,
    "index_fill": _by_operands("IndexFill", 0, 1),
    "linear": _linear,
    "masked_fill": _by_operands("MaskedFill", 0, 1),
    "matmul": lambda shape, edges: ("Dot", "Mv", "Mm", "UnsafeView")[min(len(shape), 3)],
    "mean": _reduction("Mean"),
    "nll_loss_of_classes": lambda shape, edges: "NllLoss2D" if len(shape) > 1 else "NllLoss",
    "pow": _pow,
    "prod": _reduction("Prod"),
    "remainder": _by_operands("Remainder", 0, 1),
    "sum": _reduction("Sum"),
    "transpose": lambda shape, edges: "T" if len(shape) == 2 else "Transpose",
}
