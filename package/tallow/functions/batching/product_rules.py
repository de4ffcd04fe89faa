"""Rules of products of matrices, of linear algebra and of layers."""

from __future__ import annotations

from typing import Any

from tallow.core.apply import apply
from tallow.core.creation import arange
from tallow.core.tensor import Tensor, wrap
from tallow.functions.batching.rules import Call, of_samples, rule
from tallow.functions.batching.tensors import aligned, batched
from tallow.ops.channel_normalization import group_norm
from tallow.ops.joining import cat as cat_op
from tallow.ops.matmul import matmul
from tallow.ops.selection import where
from tallow.ops.table import OPS


@rule("matmul", "mm", "bmm", "mv", "dot")
def _matmul(call: Call) -> Any:
    """Multiply matrices: vectors become rows or columns, and matrices without a batch broadcast."""
    a, b = call.args
    row, column = a.ndim == 1, b.ndim == 1
    a = a.unsqueeze(0) if row else a
    b = b.unsqueeze(1) if column else b
    rank = max(a.ndim, b.ndim)
    y = apply(matmul, aligned(call.level, a, rank), aligned(call.level, b, rank))
    y = y.squeeze(-1) if column else y
    return y.squeeze(-1 if column else -2) if row else y


@rule("outer")
def _outer(call: Call) -> Any:
    a, b = call.args
    return call.compose(lambda: a.unsqueeze(1) * b)


@rule("addmm", "addmv", "baddbmm", "addbmm", "addr")
def _add_product(call: Call) -> Any:
    x, a, b = call.args
    alpha, beta = call["alpha"], call["beta"]
    product = {"addr": "outer", "addmv": "mv", "addmm": "mm"}.get(call.op.name, "bmm")

    def compute() -> Tensor:
        y: Tensor = apply(OPS[product], a, b)
        y = y.sum(0) if call.op.name == "addbmm" else y
        y = y if alpha == 1 else y * alpha
        return y if beta == 0 else y + (x if beta == 1 else x * beta)

    return call.compose(compute)


@rule("linear")
def _linear(call: Call) -> Any:
    x, weight, bias = call.args
    if call.first_is_alone:
        return call.run(x.value, weight, bias)
    if call.is_batched(weight):
        y = apply(matmul, x, weight.mT if weight.ndim == 2 else weight)
    else:
        y = call.run(x, weight, None)
    return call.full(y if bias is None else y + bias)


@rule("csr_matmul")
def _csr_matmul(call: Call) -> Any:
    """Multiply by the columns of all elements at once; matrices with other values each stand along a diagonal."""
    values, dense, crow, col = call.args
    if call.is_batched(crow) or call.is_batched(col):
        return NotImplemented
    count, rows, (m, n) = call.level.size, crow.numel() - 1, dense.shape
    if not call.is_batched(values):
        product = call.run(values, dense.value.transpose(0, 1).reshape(m, count * n), crow, col)
        return product.reshape(rows, count, n).transpose(0, 1)
    blocks = arange(count, device=col.device)[:, None]
    ends = arange(count, count + 1, device=col.device) * col.numel()
    pointers = apply(cat_op, [(crow[:-1] + blocks * col.numel()).reshape(-1), ends])
    product = call.run(
        values.value.reshape(-1), call.full(dense).reshape(count * m, n), pointers, (col + blocks * m).reshape(-1)
    )
    return product.reshape(count, rows, n)


@rule("linalg_qr")
def _qr(call: Call) -> Any:
    return NotImplemented if call.args[1] == "r" else call.run(call.args[0].value, call.args[1])


@rule("linalg_solve")
def _solve(call: Call) -> Any:
    a, b = call.args
    if not call["left"]:
        return NotImplemented
    is_vector = b.ndim == 1 or (b.ndim == a.ndim - 1 and b.shape == a.shape[:-1])
    b = b.unsqueeze(-1) if is_vector else b
    y = call.run(*_matrices(call, a, b))
    return y.squeeze(-1) if is_vector else y


@rule("linalg_solve_triangular", "cholesky_solve", "cdist")
def _pairs(call: Call) -> Any:
    """Give both the batch dim: the dims before those of the matrices broadcast."""
    a, b = _matrices(call, *call.args[:2])
    return call.run(a, b, *call.args[2:])


def _matrices(call: Call, *operands: Tensor) -> list[Tensor]:
    rank = max(x.ndim for x in operands)
    return [aligned(call.level, x, rank) for x in operands]


@rule("bilinear")
def _bilinear(call: Call) -> Any:
    a, b, weight, bias = call.args
    if call.is_batched(weight) or call.is_batched(bias):
        return NotImplemented
    return call.run(call.full(a), call.full(b), weight, bias)


@rule("scaled_dot_product_attention")
def _attention(call: Call) -> Any:
    """Give queries, keys and values the batch dim; masks broadcast."""
    *qkv, bias, allowed, keep = call.args
    rank = max(x.ndim for x in qkv)
    operands = []
    for x in qkv:
        y = call.full(x)
        operands.append(y.reshape(y.shape[0], *[1] * (rank - x.ndim), *x.shape) if x.ndim < rank else y)
    masks = [aligned(call.level, m, rank) if isinstance(m, Tensor) else m for m in (bias, allowed, keep)]
    return call.run(*operands, *masks)


# ------------------------------------------------------------------------------------------------------ normalisation


@rule("layer_norm", "rms_norm")
def _layer_norm(call: Call) -> Any:
    x, shape, *parameters, eps = call.args
    if call.first_is_alone:
        return call.run(x.value, shape, *parameters, eps)
    y = call.run(x, shape, *[None] * len(parameters), eps)
    return call.full(_scaled(y, *parameters))


@rule("group_norm")
def _group_norm(call: Call) -> Any:
    x, groups, weight, bias, eps = call.args
    if call.first_is_alone:
        return of_samples(x.value, 2, lambda y: call.run(y, groups, weight, bias, eps))
    return call.full(_scaled(apply(group_norm, x, groups, None, None, eps), *_by_channel(x, weight, bias)))


@rule("batch_norm_in_evaluation")
def _batch_norm(call: Call) -> Any:
    x, mean, var, weight, bias, eps = call.args
    if call.first_is_alone and x.ndim > 1:
        return of_samples(x.value, 2, lambda y: call.run(y, mean, var, weight, bias, eps))
    mean, var = _by_channel(x, *(t if isinstance(t, Tensor) else wrap(t) for t in (mean, var)))
    return call.full(_scaled((x - mean) / (var + eps).sqrt(), *_by_channel(x, weight, bias)))


@rule("batch_norm_in_training")
def _batch_norm_in_training(call: Call) -> Any:
    """Normalise the channels of all elements as so many channels."""
    x, weight, bias, eps = call.args
    if not call.is_batched(x):
        return NotImplemented
    size, (n, c, *rest) = call.level.size, x.shape
    y, mean, var = call.run(x.value.transpose(0, 1).reshape(n, size * c, *rest), None, None, eps)
    y = y.reshape(n, size, c, *rest).transpose(0, 1)
    if weight is not None or bias is not None:
        y = call.full(_scaled(batched(y, call.level), *_by_channel(x, weight, bias)))
    return y, mean.reshape(size, c), var.reshape(size, c)


def _by_channel(x: Tensor, *parameters: Tensor | None) -> list[Tensor | None]:
    """Return vectors of channels so that they broadcast to x, of shape (N, C, ...)."""
    return [None if p is None else p.reshape(-1, *[1] * (x.ndim - 2)) for p in parameters]


def _scaled(y: Tensor, weight: Tensor | None, bias: Tensor | None = None) -> Tensor:
    y = y if weight is None else y * weight
    return y if bias is None else y + bias


@rule("prelu")
def _prelu(call: Call) -> Any:
    x, weight = call.args
    if call.first_is_alone and (x.ndim > 1 or weight.numel() == 1):
        return of_samples(x.value, min(x.ndim, 2), lambda y: call.run(y, weight))
    weight = weight.reshape((-1, *[1] * (x.ndim - 2)) if weight.numel() > 1 else ())
    return call.compose(lambda: apply(where, x > 0, x, x * weight))


# -------------------------------------------------------------------------------------------------------- convolution


@rule("conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d")
def _convolution(call: Call) -> Any:
    """Join the batch dim with the samples; with a kernel for each element, join it with the channels, as groups."""
    x, weight, bias = call.args[:3]
    count = x.ndim - (weight.ndim - 2)  # of the dims before the spatial ones
    if call.first_is_alone:
        return of_samples(x.value, count, lambda y: call.run(y, weight, bias, *call.args[3:]))
    if not call.is_batched(weight):  # a bias for each element
        y = call.run(x, weight, None, *call.args[3:])
        return call.full(y + bias.reshape(-1, *[1] * (weight.ndim - 2)))
    size = call.level.size
    images = call.full(x if count == 2 else x.unsqueeze(0)).transpose(0, 1)  # (N, B, C, ...)
    kernels = weight.value.flatten(0, 1)
    biases = None if bias is None else call.full(bias).reshape(-1)
    args = list(call.args)
    args[:3] = images.flatten(1, 2), kernels, biases
    groups = call.op.names.index("groups")
    args[groups] = args[groups] * size
    y = call.run(*args)
    y = y.unflatten(1, (size, -1)).transpose(0, 1)
    return y if count == 2 else y.squeeze(1)


@rule("unfold", "fold")
def _patches(call: Call) -> Any:
    x = call.args[0]
    count = x.ndim - (3 if call.op.name == "unfold" else 2) + 1
    return of_samples(x.value, count, lambda y: call.run(y, *call.args[1:]))


@rule("resample")
def _resample(call: Call) -> Any:
    x, taps = call.args
    return of_samples(x.value, x.ndim - len(taps), lambda y: call.run(y, taps))


@rule("max_unpool")
def _max_unpool(call: Call) -> Any:
    x, indices, dims, size = call.args
    x, indices = call.full(x), call.full(indices)
    count = x.ndim - dims - 1
    if count < 2:
        return call.run(x, indices, dims, size)
    y = call.run(x.flatten(0, 1), indices.flatten(0, 1), dims, size)
    return y.unflatten(0, tuple(x.shape[:2]))


@rule("grid_sample")
def _grid_sample(call: Call) -> Any:
    x, grid, *rest = call.args
    y = call.run(call.full(x).flatten(0, 1), call.full(grid).flatten(0, 1), *rest)
    return y.unflatten(0, (call.level.size, -1))


# -------------------------------------------------------------------------------------------------------------- losses


@rule("cross_entropy_of_classes", "nll_loss_of_classes")
def _classes(call: Call) -> Any:
    """Compute the loss of each sample, and reduce those of each element."""
    x, target, weight = call.args[:3]
    if call.is_batched(weight):
        return NotImplemented
    size, is_single = call.level.size, x.ndim == 1
    reduction, ignored = call["reduction"], call["ignore_index"]
    logits, labels = call.full(x), call.full(target if isinstance(target, Tensor) else wrap(target))
    keywords = {"reduction": "none"}
    args = list(call.args)
    names = call.op.names
    for name in keywords.keys() & set(names):
        args[names.index(name)] = keywords.pop(name)
    args[0], args[1] = (logits, labels) if is_single else (logits.flatten(0, 1), labels.flatten(0, 1))
    values = call.run(*args, **keywords)
    values = values if is_single else values.reshape(size, *labels.shape[1:])
    if reduction == "none":
        return values
    total = values.reshape(size, -1).sum(1)
    if reduction == "sum":
        return total
    is_used = labels != ignored
    share = is_used.to(x.dtype) if weight is None else _weights(weight, labels, is_used).to(x.dtype)
    return total / share.reshape(size, -1).sum(1)


def _weights(weight: Any, labels: Tensor, is_used: Tensor) -> Tensor:
    table = weight if isinstance(weight, Tensor) else wrap(weight)
    return table[labels.masked_fill(~is_used, 0)] * is_used
