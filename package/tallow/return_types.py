"""The named results of ops with several outputs, as torch.return_types: tuples whose items have names too."""

from __future__ import annotations

from collections import namedtuple
from typing import Any


def _repr(self: Any) -> str:
    items = ",\n".join(f"{field}={value!r}" for field, value in zip(self._fields, self, strict=True))
    return f"tallow.return_types.{type(self).__name__}(\n{items})"


def _named(name: str, *fields: str) -> Any:
    made = namedtuple(name, fields, module=__name__)  # type: ignore[misc]  # mypy wants a literal
    made.__repr__ = _repr  # type: ignore[method-assign]
    return made


aminmax = _named("aminmax", "min", "max")
cummax = _named("cummax", "values", "indices")
cummin = _named("cummin", "values", "indices")
frexp = _named("frexp", "mantissa", "exponent")
kthvalue = _named("kthvalue", "values", "indices")
linalg_eig = _named("linalg_eig", "eigenvalues", "eigenvectors")
linalg_eigh = _named("linalg_eigh", "eigenvalues", "eigenvectors")
linalg_lstsq = _named("linalg_lstsq", "solution", "residuals", "rank", "singular_values")
linalg_qr = _named("linalg_qr", "Q", "R")
linalg_slogdet = _named("linalg_slogdet", "sign", "logabsdet")
linalg_svd = _named("linalg_svd", "U", "S", "Vh")
max = _named("max", "values", "indices")
median = _named("median", "values", "indices")
min = _named("min", "values", "indices")
mode = _named("mode", "values", "indices")
nanmedian = _named("nanmedian", "values", "indices")
qr = _named("qr", "Q", "R")
slogdet = _named("slogdet", "sign", "logabsdet")
sort = _named("sort", "values", "indices")
svd = _named("svd", "U", "S", "V")
topk = _named("topk", "values", "indices")
