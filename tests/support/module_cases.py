"""A line for each configuration of a module of `nn`: its arguments, and the inputs of a call."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from cases import integers, normal, uniform


class Case(NamedTuple):
    name: str
    inputs: tuple[Any, ...]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    call: dict[str, Any]
    modes: tuple[bool, ...]
    constants: tuple[int, ...]


def case(
    name: str,
    *args: Any,
    inputs: Any = (),
    call: dict[str, Any] | None = None,
    modes: tuple[bool, ...] = (True, False),
    constants: tuple[int, ...] = (),
    **kwargs: Any,
) -> Case:
    """`nn.<name>(*args, **kwargs)`, called with the inputs and the keyword arguments `call`; arrays become tensors.

    Float inputs require grad, except those at the indices `constants`.
    """
    inputs = inputs if isinstance(inputs, tuple) else (inputs,)
    return Case(name, inputs, args, kwargs, call or {}, modes, constants)


EVALUATION = (False,)  # of layers that draw random numbers in training

X = normal(3, 4)
L = normal(2, 4, 9)
P = normal(2, 4, 8, 6)
D = normal(2, 4, 5, 6, 4)

ACTIVATIONS = [
    case("ReLU", inputs=X),
    case("ReLU", inplace=True, inputs=X),
    case("ReLU6", inputs=4 * X),
    case("ReLU6", True, inputs=4 * X),
    case("LeakyReLU", inputs=X),
    case("LeakyReLU", 0.2, True, inputs=X),
    case("PReLU", inputs=X),
    case("PReLU", 4, 0.1, inputs=X),
    case("RReLU", inputs=X, modes=EVALUATION),
    case("RReLU", 0.1, 0.2, True, inputs=X, modes=EVALUATION),
    case("Hardtanh", inputs=X),
    case("Hardtanh", -0.5, 0.7, inplace=True, inputs=X),
    case("Threshold", 0.1, 20.0, inputs=X),
    case("Threshold", 0.1, 20.0, True, inputs=X),
    case("Hardsigmoid", inputs=4 * X),
    case("Hardswish", inputs=4 * X),
    case("Hardshrink", inputs=X),
    case("Hardshrink", 0.2, inputs=X),
    case("Softshrink", 0.2, inputs=X),
    case("Sigmoid", inputs=X),
    case("LogSigmoid", inputs=X),
    case("Tanh", inputs=X),
    case("Tanhshrink", inputs=X),
    case("Softsign", inputs=X),
    case("Softplus", inputs=X),
    case("Softplus", 2.0, 3.0, inputs=3 * X),
    case("ELU", inputs=X),
    case("ELU", 0.5, True, inputs=X),
    case("CELU", 0.5, inputs=X),
    case("SELU", inputs=X),
    case("SELU", True, inputs=X),
    case("GELU", inputs=X),
    case("GELU", "tanh", inputs=X),
    case("SiLU", inputs=X),
    case("SiLU", True, inputs=X),
    case("Mish", inputs=X),
    case("GLU", inputs=X),
    case("GLU", 1, inputs=P),
    case("Softmax", dim=1, inputs=X),
    case("LogSoftmax", dim=-1, inputs=X),
    case("Softmin", dim=0, inputs=X),
    case("Softmax2d", inputs=P),
]

POOLING = [
    case("MaxPool1d", 3, inputs=L),
    case("MaxPool1d", 3, 2, 1, 2, ceil_mode=True, inputs=L),
    case("MaxPool1d", 2, return_indices=True, inputs=L),
    case("MaxPool2d", 2, inputs=P),
    case("MaxPool2d", (3, 2), (2, 1), (1, 0), inputs=P),
    case("MaxPool2d", 3, stride=2, return_indices=True, ceil_mode=True, inputs=P[0]),
    case("MaxPool3d", 2, padding=1, inputs=D),
    case("MaxUnpool1d", 3, inputs=(L[..., :2], np.array([1, 4], np.int64) + np.zeros((2, 4, 1), np.int64))),
    case("MaxUnpool2d", (2, 3), inputs=(normal(1, 2, 2, 1), np.array([[[[1], [9]], [[2], [7]]]], np.int64))),
    case(
        "MaxUnpool2d",
        2,
        stride=2,
        inputs=(normal(1, 1, 1, 1), np.array([[[[4]]]], np.int64)),
        call={"output_size": (3, 3)},
    ),
    case("MaxUnpool3d", 2, inputs=(normal(1, 1, 1, 1, 1), np.array([[[[[5]]]]], np.int64))),
    case("AvgPool1d", 3, inputs=L),
    case("AvgPool1d", 3, 2, 1, True, False, inputs=L),
    case("AvgPool2d", 2, inputs=P),
    case("AvgPool2d", (3, 2), padding=1, count_include_pad=False, ceil_mode=True, inputs=P),
    case("AvgPool2d", 2, divisor_override=3, inputs=P),
    case("AvgPool3d", 2, 1, 1, inputs=D),
    case("LPPool1d", 2, 3, inputs=np.abs(L)),
    case("LPPool2d", 1.5, (3, 2), stride=1, ceil_mode=True, inputs=np.abs(P)),
    case("LPPool3d", 2, 2, inputs=np.abs(D)),
    case("FractionalMaxPool2d", 2, output_size=3, _random_samples=uniform(*P.shape[:2], 2), inputs=P),
    case("FractionalMaxPool3d", 2, output_ratio=0.6, _random_samples=uniform(*D.shape[:2], 3), inputs=D),
    case("AdaptiveMaxPool1d", 4, inputs=L),
    case("AdaptiveMaxPool2d", (3, None), inputs=P),
    case("AdaptiveMaxPool2d", 2, return_indices=True, inputs=P),
    case("AdaptiveMaxPool3d", 2, inputs=D),
    case("AdaptiveAvgPool1d", 4, inputs=L),
    case("AdaptiveAvgPool2d", (3, None), inputs=P),
    case("AdaptiveAvgPool2d", 1, inputs=P[0]),
    case("AdaptiveAvgPool3d", (2, 3, 1), inputs=D),
]

PADDING = [
    case(f"{kind}Pad{dims}d", padding, *([1.5] if kind == "Constant" else []), inputs=x)
    for kind in ("Constant", "Zero", "Reflection", "Replication", "Circular")
    for dims, x, padding in ((1, L, 2), (2, P, (1, 2, 0, 3)), (3, D, 1))
]

CONVOLUTIONS = [
    case("Conv1d", 4, 6, 3, inputs=L),
    case("Conv1d", 4, 6, 3, 2, 1, 2, 2, False, inputs=L[0]),
    case("Conv1d", 4, 6, (4,), padding="same", padding_mode="reflect", inputs=L),
    case("Conv1d", 4, 4, 3, padding="valid", padding_mode="circular", inputs=L),
    case("Conv2d", 4, 6, 3, inputs=P),
    case("Conv2d", 4, 6, (3, 2), (2, 1), (1, 0), (1, 2), 2, inputs=P),
    case("Conv2d", 4, 8, 3, padding=1, groups=4, bias=False, inputs=P),
    case("Conv2d", 4, 3, (2, 5), padding="same", inputs=P),
    case("Conv2d", 4, 3, (2, 3), padding=(1, 2), padding_mode="circular", inputs=P),
    case("Conv2d", 4, 3, 3, padding=1, padding_mode="replicate", inputs=P[0]),
    case("Conv3d", 4, 3, (2, 3, 1), padding=(1, 0, 0), stride=2, inputs=D),
    case("Conv3d", 4, 4, 2, padding=1, padding_mode="reflect", groups=2, inputs=D),
    case("ConvTranspose1d", 4, 6, 3, inputs=L),
    case("ConvTranspose1d", 4, 6, 3, 2, 1, 1, 2, False, 2, inputs=L[0]),
    case("ConvTranspose2d", 4, 3, (3, 2), stride=2, inputs=P),
    case("ConvTranspose2d", 4, 3, 3, stride=2, padding=1, inputs=P, call={"output_size": (16, 11)}),
    case("ConvTranspose2d", 4, 3, 3, stride=2, inputs=P, call={"output_size": (2, 3, 18, 13)}),
    case("ConvTranspose3d", 4, 2, 2, stride=(1, 2, 1), output_padding=(0, 1, 0), inputs=D),
]

NORMALIZATION = [
    case("BatchNorm1d", 4, inputs=X),
    case("BatchNorm1d", 4, 1e-3, None, inputs=L),
    case("BatchNorm1d", 4, affine=False, inputs=L),
    case("BatchNorm2d", 4, momentum=0.3, inputs=P),
    case("BatchNorm2d", 4, track_running_stats=False, inputs=P),
    case("BatchNorm2d", 4, bias=False, inputs=P),
    case("BatchNorm3d", 4, inputs=D),
    case("InstanceNorm1d", 4, inputs=L),
    case("InstanceNorm1d", 4, inputs=L[0]),
    case("InstanceNorm1d", 4, 1e-3, 0.2, True, True, inputs=L),
    case("InstanceNorm2d", 4, affine=True, inputs=P),
    case("InstanceNorm2d", 4, track_running_stats=True, inputs=P),
    case("InstanceNorm3d", 4, affine=True, bias=False, inputs=D),
    case("GroupNorm", 2, 4, inputs=P),
    case("GroupNorm", 4, 4, 1e-3, False, inputs=X),
    case("GroupNorm", 1, 4, bias=False, inputs=L),
    case("LayerNorm", 4, inputs=X),
    case("LayerNorm", (8, 6), 1e-3, bias=False, inputs=P),
    case("LayerNorm", [6], elementwise_affine=False, inputs=P),
    case("RMSNorm", 4, inputs=X),
    case("RMSNorm", (8, 6), 1e-3, False, inputs=P),
    case("LocalResponseNorm", 2, inputs=P),
    case("LocalResponseNorm", 3, 1e-2, 0.5, 2.0, inputs=L),
]

TABLES_AND_MAPS = [
    case("Identity", 3, whatever=4, inputs=X),
    case("Linear", 4, 5, inputs=X),
    case("Linear", 6, 5, bias=False, inputs=P),
    case("AdaptiveLogSoftmaxWithLoss", 16, 20, [5, 10], inputs=(normal(6, 16), integers(6, high=20))),
    case("AdaptiveLogSoftmaxWithLoss", 8, 20, [5], 2.0, True, inputs=(normal(6, 8), integers(6, high=5))),
    case("Bilinear", 4, 4, 5, inputs=(X, normal(3, 4))),
    case("Bilinear", 4, 4, 5, False, inputs=(normal(2, 3, 4), normal(2, 3, 4))),
    case("Embedding", 7, 5, inputs=integers(3, 4, high=7)),
    case("Embedding", 7, 5, -2, scale_grad_by_freq=True, inputs=integers(3, 4, high=7)),
    case("Embedding", 7, 5, padding_idx=0, max_norm=1.5, norm_type=1.0, inputs=integers(3, 4, high=7)),
    case("EmbeddingBag", 7, 5, inputs=integers(3, 4, high=7)),
    case("EmbeddingBag", 7, 5, mode="max", padding_idx=2, inputs=integers(3, 4, high=7)),
    case("EmbeddingBag", 7, 5, mode="sum", max_norm=1.0, inputs=(integers(6, high=7), np.array([0, 2], np.int64))),
    case(
        "EmbeddingBag",
        7,
        5,
        mode="sum",
        include_last_offset=True,
        inputs=(integers(6, high=7), np.array([0, 2, 6], np.int64), normal(6)),
    ),
]

MOVING = [
    case("Flatten", inputs=P),
    case("Flatten", 0, 2, inputs=P),
    case("Unflatten", 1, (2, 2), inputs=P),
    case("Unfold", 3, inputs=P),
    case("Unfold", (3, 2), (1, 2), 1, (2, 1), inputs=P),
    case("Fold", (4, 5), (2, 3), inputs=normal(2, 12, 9)),
    case("Fold", 4, 2, 1, 1, 2, inputs=normal(2, 8, 9)),
    case("PixelShuffle", 2, inputs=P),
    case("PixelUnshuffle", 2, inputs=P),
    case("ChannelShuffle", 2, inputs=P),
    case("Upsample", scale_factor=2, inputs=L),
    case("Upsample", (5, 7), inputs=P),
    case("Upsample", scale_factor=(1.5, 2), mode="bilinear", inputs=P),
    case("Upsample", 12, None, "bicubic", True, inputs=P),
    case("Upsample", scale_factor=1.6, mode="linear", recompute_scale_factor=True, inputs=L),
    case("UpsamplingNearest2d", scale_factor=3, inputs=P),
    case("UpsamplingBilinear2d", (9, 4), inputs=P),
    case("Dropout", 0.3, inputs=X, modes=EVALUATION),
    case("Dropout", 0.0, True, inputs=X),
    case("Dropout", 1.0, inputs=X),
    case("Dropout1d", inputs=L, modes=EVALUATION),
    case("Dropout2d", 1.0, inputs=P),
    case("Dropout3d", 0.2, inputs=D, modes=EVALUATION),
    case("AlphaDropout", 0.2, inputs=X, modes=EVALUATION),
    case("FeatureAlphaDropout", inputs=P, modes=EVALUATION),
    case("PairwiseDistance", inputs=(X, normal(3, 4))),
    case("PairwiseDistance", 1.0, 1e-3, True, inputs=(X, normal(3, 4))),
    case("CosineSimilarity", inputs=(X, normal(3, 4))),
    case("CosineSimilarity", 0, 1e-3, inputs=(X, normal(3, 4))),
]

CLASSES = integers(3, high=4)
SIGNS = np.array([1.0, -1.0, 1.0])
ODDS = 1 / (1 + np.exp(-normal(3, 4)))
WEIGHTS = np.array([0.5, 2.0, 1.0, 0.3])
BITS = integers(3, 4, high=2).astype(np.float64)
LABELS = np.array([[2, 0, -1, 1], [1, -1, 0, 0], [3, 2, 1, 0]], np.int64)
LOGS = np.log(np.exp(normal(6, 2, 5)) / np.exp(normal(6, 2, 5)).sum(-1, keepdims=True))
CTC = (LOGS, np.array([[1, 2, 2], [3, 1, 4]], np.int64), np.array([6, 5], np.int64), np.array([3, 2], np.int64))

LOSSES = [
    case("L1Loss", inputs=(X, normal(3, 4))),
    case("L1Loss", reduction="none", inputs=(X, normal(3, 4))),
    case("MSELoss", reduction="sum", inputs=(X, normal(3, 4))),
    case("SmoothL1Loss", beta=0.5, inputs=(X, normal(3, 4))),
    case("HuberLoss", "sum", 0.7, inputs=(X, normal(3, 4))),
    case("CrossEntropyLoss", inputs=(X, CLASSES)),
    case("CrossEntropyLoss", WEIGHTS, ignore_index=2, label_smoothing=0.1, inputs=(X, CLASSES)),
    case("CrossEntropyLoss", reduction="none", inputs=(X, ODDS)),
    case("LinearCrossEntropyLoss", 4, 5, inputs=(X, CLASSES)),
    case("LinearCrossEntropyLoss", 4, 5, bias=True, label_smoothing=0.1, reduction="sum", inputs=(X, CLASSES)),
    case("NLLLoss", inputs=(X, CLASSES)),
    case("NLLLoss", WEIGHTS, ignore_index=1, reduction="sum", inputs=(X, CLASSES)),
    case("BCELoss", inputs=(ODDS, BITS)),
    case("BCELoss", WEIGHTS, reduction="none", inputs=(ODDS, BITS)),
    case("BCEWithLogitsLoss", inputs=(X, BITS)),
    case("BCEWithLogitsLoss", WEIGHTS, pos_weight=WEIGHTS, inputs=(X, BITS)),
    case("KLDivLoss", reduction="batchmean", inputs=(np.log(ODDS), ODDS[::-1])),
    case("KLDivLoss", reduction="sum", log_target=True, inputs=(np.log(ODDS), X)),
    case("PoissonNLLLoss", inputs=(X, BITS)),
    case("PoissonNLLLoss", False, True, eps=1e-3, reduction="none", inputs=(ODDS, 3 * BITS)),
    case("GaussianNLLLoss", inputs=(X, normal(3, 4), ODDS)),
    case("GaussianNLLLoss", full=True, eps=0.4, reduction="sum", inputs=(X, normal(3, 4), ODDS)),
    case("CTCLoss", inputs=CTC),
    case("CTCLoss", 4, "none", True, inputs=CTC),
    case("SoftMarginLoss", inputs=(X, 2 * BITS - 1), constants=(1,)),
    case("HingeEmbeddingLoss", 0.7, inputs=(X, 2 * BITS - 1)),
    case("CosineEmbeddingLoss", inputs=(X, normal(3, 4), SIGNS)),
    case("CosineEmbeddingLoss", 0.2, reduction="none", inputs=(X, normal(3, 4), SIGNS)),
    case("MarginRankingLoss", 0.3, inputs=(X[:, 0], X[:, 1], SIGNS)),
    case("MultiMarginLoss", inputs=(X, CLASSES)),
    case("MultiMarginLoss", 2, 0.5, WEIGHTS, reduction="sum", inputs=(X, CLASSES)),
    case("MultiLabelMarginLoss", inputs=(X, LABELS)),
    case("MultiLabelSoftMarginLoss", WEIGHTS, inputs=(X, BITS)),
    case("TripletMarginLoss", inputs=(X, normal(3, 4), normal(3, 4) + 1)),
    case("TripletMarginLoss", 0.5, 1.0, swap=True, reduction="sum", inputs=(X, normal(3, 4), normal(3, 4) + 1)),
    case("TripletMarginWithDistanceLoss", inputs=(X, normal(3, 4), normal(3, 4) + 1)),
    case("MSELoss", size_average=False, inputs=(X, normal(3, 4))),
    case("L1Loss", reduce=False, inputs=(X, normal(3, 4))),
]

S = normal(6, 3, 4)  # (T, N, I)

RECURRENT = [
    case("RNN", 4, 5, inputs=S),
    case("RNN", 4, 5, 2, "relu", False, True, 0.0, True, inputs=S),
    case("RNN", 4, 5, inputs=(S[:, 0], normal(1, 5))),
    case("RNN", 4, 5, num_layers=2, dropout=0.5, inputs=S, modes=EVALUATION),
    case("LSTM", 4, 5, inputs=S),
    case("LSTM", 4, 5, 3, batch_first=True, bidirectional=True, inputs=S),
    case("LSTM", 4, 5, 2, False, inputs=(S, (normal(2, 3, 5), normal(2, 3, 5)))),
    case("LSTM", 4, 5, 2, bidirectional=True, proj_size=2, inputs=(S, (normal(4, 3, 2), normal(4, 3, 5)))),
    case("LSTM", 4, 5, batch_first=True, inputs=(S[:, 0], (normal(1, 5), normal(1, 5)))),
    case("GRU", 4, 5, inputs=S),
    case("GRU", 4, 5, 2, True, True, 0.3, True, inputs=(S, normal(4, 6, 5)), modes=EVALUATION),
    case("GRU", 4, 5, bias=False, inputs=S[:, 0]),
    case("RNNCell", 4, 5, inputs=(S[0], normal(3, 5))),
    case("RNNCell", 4, 5, False, "relu", inputs=S[0]),
    case("LSTMCell", 4, 5, inputs=(S[0], (normal(3, 5), normal(3, 5)))),
    case("LSTMCell", 4, 5, inputs=S[0, 0]),
    case("GRUCell", 4, 5, inputs=(S[0, 0], normal(5))),
    case("GRUCell", 4, 5, bias=False, inputs=S[0]),
]

M = normal(5, 3, 4)  # (S, N, D)
CAUSAL = np.triu(np.full((6, 6), -np.inf), 1)
HIDDEN = np.arange(6) >= np.array([6, 4, 2])[:, None]  # (N, T)
SOME = normal(6, 5) > 1  # (T, S)


def encoder_layer(nn: Any) -> Any:
    return nn.TransformerEncoderLayer(4, 2, 8, 0.0, norm_first=True)


def decoder_layer(nn: Any) -> Any:
    return nn.TransformerDecoderLayer(4, 2, 8, 0.0)


def norm(nn: Any) -> Any:
    return nn.LayerNorm(4)


def tanh(nn: Any) -> Any:
    return nn.Tanh()


SELF = (S, S, S)
UNWEIGHTED = {"attn_mask": CAUSAL, "need_weights": False, "is_causal": True}
CROSS = {"tgt_mask": CAUSAL, "tgt_is_causal": True, "memory_mask": SOME}

ATTENTION = [
    case("MultiheadAttention", 4, 2, inputs=SELF),
    case("MultiheadAttention", 4, 2, inputs=(S, M, M), call={"attn_mask": SOME, "average_attn_weights": False}),
    case("MultiheadAttention", 4, 2, inputs=(S[:, 0], M[:, 0], M[:, 0])),
    case("MultiheadAttention", 4, 2, bias=False, batch_first=True, inputs=SELF, call={"need_weights": False}),
    case("MultiheadAttention", 4, 4, 0.5, add_bias_kv=True, add_zero_attn=True, inputs=(S, M, M), modes=EVALUATION),
    case("MultiheadAttention", 4, 2, kdim=3, vdim=5, inputs=(S, normal(5, 3, 3), normal(5, 3, 5))),
    case("MultiheadAttention", 4, 2, inputs=SELF, call=UNWEIGHTED),
    case("MultiheadAttention", 4, 2, inputs=SELF, call={"key_padding_mask": HIDDEN}),
    case("TransformerEncoderLayer", 4, 2, 8, 0.0, inputs=S),
    case("TransformerEncoderLayer", 4, 2, 8, inputs=S, modes=EVALUATION),
    case("TransformerEncoderLayer", 4, 2, 8, 0.0, "gelu", 1e-3, True, True, False, inputs=S),
    case("TransformerEncoderLayer", 4, 2, 8, 0.0, tanh, inputs=S, call={"src_key_padding_mask": HIDDEN}),
    case("TransformerEncoderLayer", 4, 2, 8, 0.0, inputs=S, call={"src_mask": CAUSAL, "is_causal": True}),
    case("TransformerDecoderLayer", 4, 2, 8, 0.0, inputs=(S, M)),
    case("TransformerDecoderLayer", 4, 2, 8, 0.0, norm_first=True, bias=False, inputs=(S, M)),
    case("TransformerDecoderLayer", 4, 2, 8, 0.0, "gelu", inputs=(S, M), call=CROSS),
    case("TransformerEncoder", encoder_layer, 2, inputs=S, call={"mask": CAUSAL}),
    case("TransformerEncoder", encoder_layer, 2, norm, inputs=S, call={"src_key_padding_mask": HIDDEN}),
    case("TransformerDecoder", decoder_layer, 2, norm, inputs=(S, M), call={"tgt_mask": CAUSAL}),
    case("Transformer", 4, 2, 1, 2, 8, 0.0, inputs=(M, S), call={"tgt_mask": CAUSAL}),
    case("Transformer", 4, 2, 2, 1, 8, inputs=(M[:, 0], S[:, 0]), modes=EVALUATION),
    case("Transformer", 4, 2, 1, 1, 8, 0.0, "gelu", batch_first=True, norm_first=True, inputs=(M[:3], S[:3])),
]

CASES = [
    *ACTIVATIONS,
    *POOLING,
    *PADDING,
    *CONVOLUTIONS,
    *NORMALIZATION,
    *TABLES_AND_MAPS,
    *MOVING,
    *LOSSES,
    *RECURRENT,
    *ATTENTION,
]


def convert(lib: Any, value: Any) -> Any:
    """Convert arrays at any depth to tensors of `lib`; call functions with `lib.nn`."""
    if callable(value):
        return value(lib.nn)
    if isinstance(value, np.ndarray):
        return lib.from_numpy(value.copy())
    if isinstance(value, dict):
        return {key: convert(lib, item) for key, item in value.items()}
    return type(value)(convert(lib, item) for item in value) if isinstance(value, tuple | list) else value


def build(lib: Any, line: Case) -> Any:
    """Return the module of a line, in float64."""
    return getattr(lib.nn, line.name)(*convert(lib, line.args), **convert(lib, line.kwargs)).double()


def flat(result: Any) -> Iterator[Any]:
    """Yield the tensors of a result."""
    for item in result if isinstance(result, tuple | list) else (result,):
        yield from flat(item) if isinstance(item, tuple | list) else (() if item is None else (item,))


def ids(lines: list[Case]) -> list[str]:
    """Return a name for each line."""

    def show(value: Any) -> str:
        return "array" if isinstance(value, np.ndarray) else getattr(value, "__name__", str(value))

    texts = [
        "-".join([c.name, *map(show, c.args), *(f"{k}={show(v)}" for k, v in (*c.kwargs.items(), *c.call.items()))])
        for c in lines
    ]
    return [f"{text}-{i}" if texts.count(text) > 1 else text for i, text in enumerate(texts)]
