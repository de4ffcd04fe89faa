"""Print sparse tensors the way PyTorch does: the parts as tensors, then what describes the tensor."""

from __future__ import annotations

from tallow import dtypes
from tallow.core.printing import _elements, _with_suffixes
from tallow.core.tensor import Tensor
from tallow.ops.memory_format import sparse_coo
from tallow.sparse.coordinates import NAMES, _nnz
from tallow.sparse.tensor import SparseTensor, implements

START = "tensor("


@implements("__repr__", "__str__")
def sparse_repr(x: SparseTensor) -> str:
    """Return tensor(indices=tensor(...), values=tensor(...), size=..., nnz=..., layout=...)."""
    names = ("indices",) if x.layout is sparse_coo else NAMES[x.layout]
    parts = [_part(name, t) for name, t in zip((*names, "values"), (*x.places, x.entries.detach()), strict=True)]
    suffixes = [f"size={tuple(x.shape)}", f"nnz={_nnz(x)}"]
    if x.device.type != "cpu":
        suffixes.insert(0, f"device='{x.device}'")
    usual = [dtypes.get_default_dtype(), dtypes.get_default_dtype().to_complex(), dtypes.int64, dtypes.bool]
    if x.dtype not in usual:
        suffixes.append(f"dtype={x.dtype}")
    suffixes.append(f"layout={x.layout!r}")
    if x.grad_fn is not None:
        suffixes.append(f"grad_fn=<{x.grad_fn.name()}>")
    elif x.requires_grad:
        suffixes.append("requires_grad=True")
    line = ",\n" + " " * len(START)
    text = START + line.join(parts)
    if x.layout is sparse_coo:
        text += line + suffixes.pop(0)
    return _with_suffixes(text, suffixes, len(START))


def _part(name: str, part: Tensor) -> str:
    prefix = f"{name}=tensor("
    if part.is_meta:
        return f"{prefix}..., size={tuple(part.shape)})"
    if not part.numel():
        return f"{prefix}[], size={tuple(part.shape)})"
    return prefix + _elements(part._host(), len(START) + len(prefix)) + ")"
