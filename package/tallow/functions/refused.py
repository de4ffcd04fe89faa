"""Names that PyTorch's tensors have, and that raise for dense tensors or since their removal."""

from __future__ import annotations

from typing import Any, NoReturn

from tallow.core.public_api import public
from tallow.core.tensor import Tensor
from tallow.errors import UnsupportedError


def _no_sparse(name: str, layout: str) -> UnsupportedError:
    return UnsupportedError(
        f"{name} expected {layout} tensor layout but got Strided", hint="convert the tensor with to_sparse()"
    )


def _removed(name: str, successor: str) -> UnsupportedError:
    return UnsupportedError(
        f"{name}: this function was deprecated since version 1.9 and is now removed", hint=f"use linalg.{successor}"
    )


@public("Tensor")
def coalesce(input: Tensor) -> NoReturn:
    """Raise UnsupportedError: only tensors in sparse coordinate layout have it."""
    raise _no_sparse("coalesce", "sparse coordinate")


@public("Tensor")
def is_coalesced(input: Tensor) -> NoReturn:
    """Raise UnsupportedError: only tensors in sparse coordinate layout have it."""
    raise _no_sparse("is_coalesced", "sparse coordinate")


@public("Tensor")
def indices(input: Tensor) -> NoReturn:
    """Raise UnsupportedError: only tensors in sparse coordinate layout have it."""
    raise _no_sparse("indices", "sparse coordinate")


@public("Tensor")
def values(input: Tensor) -> NoReturn:
    """Raise UnsupportedError: only sparse tensors have it."""
    raise _no_sparse("values", "sparse")


@public("Tensor")
def crow_indices(input: Tensor) -> NoReturn:
    """Raise UnsupportedError: only tensors in sparse row compressed layout have it."""
    raise _no_sparse("crow_indices", "sparse row compressed")


@public("Tensor")
def col_indices(input: Tensor) -> NoReturn:
    """Raise UnsupportedError: only tensors in sparse row compressed layout have it."""
    raise _no_sparse("col_indices", "sparse row compressed")


@public("Tensor")
def ccol_indices(input: Tensor) -> NoReturn:
    """Raise UnsupportedError: only tensors in sparse column compressed layout have it."""
    raise _no_sparse("ccol_indices", "sparse column compressed")


@public("Tensor")
def row_indices(input: Tensor) -> NoReturn:
    """Raise UnsupportedError: only tensors in sparse column compressed layout have it."""
    raise _no_sparse("row_indices", "sparse column compressed")


@public("tl Tensor")
def eig(input: Tensor, *args: Any, **kwargs: Any) -> NoReturn:
    """Raise UnsupportedError: PyTorch has removed it in favour of `linalg.eig`."""
    raise _removed("eig", "eig")


@public("tl Tensor")
def lstsq(input: Tensor, *args: Any, **kwargs: Any) -> NoReturn:
    """Raise UnsupportedError: PyTorch has removed it in favour of `linalg.lstsq`."""
    raise _removed("lstsq", "lstsq")


@public("tl")
def matrix_rank(input: Tensor, *args: Any, **kwargs: Any) -> NoReturn:
    """Raise UnsupportedError: PyTorch has removed it in favour of `linalg.matrix_rank`."""
    raise _removed("matrix_rank", "matrix_rank")


@public("tl Tensor")
def solve(input: Tensor, *args: Any, **kwargs: Any) -> NoReturn:
    """Raise UnsupportedError: PyTorch has removed it in favour of `linalg.solve`."""
    raise _removed("solve", "solve")


@public("tl Tensor")
def symeig(input: Tensor, *args: Any, **kwargs: Any) -> NoReturn:
    """Raise UnsupportedError: PyTorch has removed it in favour of `linalg.eigh`."""
    raise _removed("symeig", "eigh")


QUANTIZED = "int_repr q_per_channel_axis q_per_channel_scales q_per_channel_zero_points q_scale q_zero_point qscheme"
SPARSE = "smm sparse_resize_ sparse_resize_and_clear_ sspaddmm"
LAYOUTS = {QUANTIZED: "quantized", SPARSE: "sparse", "to_padded_tensor": "nested", "to_mkldnn": "MKL-DNN"}


def _refusing(name: str, layout: str) -> Any:
    def function(input: Tensor, *args: Any, **kwargs: Any) -> NoReturn:
        raise UnsupportedError(
            f"Tensor.{name} is for {layout} tensors, got a dense tensor",
            hint="see to_sparse, and tallow.nn.quantization",
        )

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"Raise UnsupportedError: only {layout} tensors have it."
    return function


for _names, _layout in LAYOUTS.items():
    for _name in _names.split():
        globals()[_name] = public("Tensor", name=_name)(_refusing(_name, _layout))
