"""Named tuples for ops with several outputs, as torch.return_types."""

from __future__ import annotations

from collections import namedtuple
from typing import Any


def _repr(self: Any) -> str:
    items = ",\n".join(f"{field}={value!r}" for field, value in zip(self._fields, self, strict=True))
    return f"tallow.return_types.{type(self).__name__}(\n{items})"


def _result_type(name: str, *fields: str) -> Any:
    cls = namedtuple(name, fields, module=__name__)  # type: ignore[misc]  # mypy wants a literal
    cls.__repr__ = _repr  # type: ignore[method-assign]
    return cls


aminmax = _result_type("aminmax", "min", "max")
cummax = _result_type("cummax", "values", "indices")
cummin = _result_type("cummin", "values", "indices")
frexp = _result_type("frexp", "mantissa", "exponent")
geqrf = _result_type("geqrf", "a", "tau")
histogram = _result_type("histogram", "hist", "bin_edges")
kthvalue = _result_type("kthvalue", "values", "indices")
linalg_cholesky_ex = _result_type("linalg_cholesky_ex", "L", "info")
linalg_eig = _result_type("linalg_eig", "eigenvalues", "eigenvectors")
linalg_eigh = _result_type("linalg_eigh", "eigenvalues", "eigenvectors")
linalg_inv_ex = _result_type("linalg_inv_ex", "inverse", "info")
linalg_ldl_factor = _result_type("linalg_ldl_factor", "LD", "pivots")
linalg_ldl_factor_ex = _result_type("linalg_ldl_factor_ex", "LD", "pivots", "info")
linalg_lstsq = _result_type("linalg_lstsq", "solution", "residuals", "rank", "singular_values")
linalg_lu = _result_type("linalg_lu", "P", "L", "U")
linalg_lu_factor = _result_type("linalg_lu_factor", "LU", "pivots")
linalg_lu_factor_ex = _result_type("linalg_lu_factor_ex", "LU", "pivots", "info")
linalg_qr = _result_type("linalg_qr", "Q", "R")
linalg_slogdet = _result_type("linalg_slogdet", "sign", "logabsdet")
linalg_solve_ex = _result_type("linalg_solve_ex", "result", "info")
linalg_svd = _result_type("linalg_svd", "U", "S", "Vh")
lu_unpack = _result_type("lu_unpack", "P", "L", "U")
max = _result_type("max", "values", "indices")
median = _result_type("median", "values", "indices")
min = _result_type("min", "values", "indices")
mode = _result_type("mode", "values", "indices")
nanmedian = _result_type("nanmedian", "values", "indices")
qr = _result_type("qr", "Q", "R")
slogdet = _result_type("slogdet", "sign", "logabsdet")
sort = _result_type("sort", "values", "indices")
svd = _result_type("svd", "U", "S", "V")
topk = _result_type("topk", "values", "indices")
triangular_solve = _result_type("triangular_solve", "solution", "cloned_coefficient")
