"""Linear algebra. Factors are unique only up to signs, so the cases multiply them back or compare what is unique."""

import math
from typing import Any

import numpy as np

from cases import booleans, case, integers, normal

LOOSE = {"rtol": 1e-4, "atol": 1e-4}  # float32 through an inverse: the error grows with the condition number


def square(*shape: int) -> Any:
    """Return well-conditioned square matrices."""
    return normal(*shape) + 3 * np.eye(shape[-1])


def symmetric(x: Any) -> Any:
    return x + x.mT


def positive(m: Any, x: Any) -> Any:
    """Return symmetric matrices with eigenvalues of at least 1."""
    return x @ x.mT + m.eye(x.shape[-1], dtype=x.dtype, device=x.device)


def singular(*shape: int) -> Any:
    x = normal(*shape)
    x[..., 0, :] = x[..., 1, :]
    return x


case("linalg_inv", lambda m, a: m.linalg.inv(a), square(3, 3), **LOOSE)
case("linalg_inv", lambda m, a: m.linalg.inv(a), square(2, 4, 4), **LOOSE)
case("linalg_inv", lambda m, a: m.linalg.inv(a), normal(0, 0))
case("linalg_inv", lambda m, a: m.inverse(a) + a.inverse(), square(3, 3), **LOOSE)
case("linalg_det", lambda m, a: m.linalg.det(a), normal(3, 3), **LOOSE)
case("linalg_det", lambda m, a: m.det(a) + a.det(), normal(2, 4, 4), **LOOSE)
case("linalg_slogdet", lambda m, a: m.linalg.slogdet(a), square(2, 3, 3), **LOOSE)
case("linalg_slogdet", lambda m, a: m.slogdet(a).logabsdet + a.slogdet()[1], square(3, 3), **LOOSE)
case("logdet", lambda m, a: m.logdet(positive(m, a)), normal(2, 3, 3), **LOOSE)
case("logdet", lambda m, a: a.logdet(), -np.eye(3), grad=False)

case("linalg_solve", lambda m, a, b: m.linalg.solve(a, b), square(3, 3), normal(3, 2), **LOOSE)
case("linalg_solve", lambda m, a, b: m.linalg.solve(a, b), square(3, 3), normal(3), **LOOSE)
case("linalg_solve", lambda m, a, b: m.linalg.solve(a, b), square(2, 3, 3), normal(2, 3), **LOOSE)
case("linalg_solve", lambda m, a, b: m.linalg.solve(a, b), square(2, 3, 3), normal(3, 4), **LOOSE)
case("linalg_solve", lambda m, a, b: m.linalg.solve(a, b), square(3, 3), normal(2, 3, 4), **LOOSE)
case("linalg_solve", lambda m, a, b: m.linalg.solve(a, b, left=False), square(2, 3, 3), normal(2, 4, 3), **LOOSE)
for _upper in (True, False):
    case(
        "linalg_solve_triangular",
        lambda m, a, b, u=_upper: m.linalg.solve_triangular(a, b, upper=u),
        square(3, 3), normal(2, 3, 4), **LOOSE,
    )  # fmt: skip
    case(
        "linalg_solve_triangular",
        lambda m, a, b, u=_upper: m.linalg.solve_triangular(a, b, upper=u, left=False, unitriangular=True),
        square(2, 3, 3), normal(2, 4, 3), **LOOSE,
    )  # fmt: skip

case("linalg_pinv", lambda m, a: m.linalg.pinv(a), normal(5, 3), **LOOSE)
case("linalg_pinv", lambda m, a: m.linalg.pinv(a), normal(2, 3, 5), **LOOSE)
case("linalg_pinv", lambda m, a: m.linalg.pinv(a, rtol=1e-3), singular(4, 4), grad=False, **LOOSE)
case("linalg_pinv", lambda m, a: m.linalg.pinv(symmetric(a), hermitian=True), square(3, 3), **LOOSE)
case("linalg_pinv", lambda m, a: m.linalg.pinv(a, atol=1.0), square(4, 4), grad=False, **LOOSE)
case("linalg_pinv", lambda m, a: m.pinverse(a) + a.pinverse(1e-3), normal(4, 3), **LOOSE)

case("linalg_cholesky", lambda m, a: m.linalg.cholesky(positive(m, a)), normal(3, 3), **LOOSE)
case("linalg_cholesky", lambda m, a: m.linalg.cholesky(positive(m, a), upper=True), normal(2, 3, 3), **LOOSE)
for _shape in ((3, 3), (2, 4, 4), (5, 3), (2, 3, 5)):
    case("lu_factor", lambda m, a: m.linalg.lu_factor(a)[0], normal(*_shape), **LOOSE)
    case("lu_factor", lambda m, a: m.linalg.lu(a)[1:], normal(*_shape), **LOOSE)
for _shape in ((3, 3), (2, 4, 4), (5, 3), (2, 3, 5), (0, 3, 3)):
    case("lu_factor", lambda m, a: tuple(m.linalg.lu_factor(a)), normal(*_shape), grad=False, **LOOSE)
    case("lu_factor", lambda m, a: tuple(m.linalg.lu(a)), normal(*_shape), grad=False, **LOOSE)
case("lu_factor", lambda m, a: tuple(m.linalg.lu(a)), singular(4, 4), grad=False, **LOOSE)
for _left in (True, False):
    for _adjoint in (True, False):
        case(
            "lu_factor",
            lambda m, a, b, o=(_left, _adjoint): m.linalg.lu_solve(
                *m.linalg.lu_factor(a), b if o[0] else b.mT, left=o[0], adjoint=o[1]
            ),
            square(2, 5, 5), normal(2, 5, 3), **LOOSE,
        )  # fmt: skip
case("linalg_cholesky", lambda m, a: m.linalg.cholesky_ex(positive(m, a)).L, normal(2, 3, 3), **LOOSE)
case("linalg_cholesky", lambda m, a: m.linalg.cholesky_ex(positive(m, a), upper=True)[1], normal(2, 3, 3), grad=False)
for _sizes in ([1.0, 2, 3, 4], [1.0, -1, 2, 3], [1.0, 2, -3, 4], [1.0, 2, 3, -4], [-1.0, 1, 1, 1]):
    case(
        "linalg_cholesky",
        lambda m, a: m.linalg.cholesky_ex(m.stack([a, m.eye(4, dtype=a.dtype, device=a.device), a - 9])).info,
        np.diag(_sizes), grad=False,
    )  # fmt: skip
case("linalg_inv", lambda m, a: m.linalg.inv_ex(a).inverse, square(2, 3, 3), **LOOSE)
case(
    "linalg_inv",
    lambda m, a: m.linalg.inv_ex(a)[1],
    np.array([np.eye(3), np.diag([2.0, 0, 0]), np.zeros((3, 3))]),
    grad=False,
)
for _shape in ((4, 3), (3, 3), (3, 5), (2, 4, 3)):
    case("linalg_qr", lambda m, a: m.linalg.qr(a), normal(*_shape), **LOOSE)
case("linalg_qr", lambda m, a: m.linalg.qr(a, mode="complete"), normal(3, 4), **LOOSE)
case("linalg_qr", lambda m, a: m.linalg.qr(a, mode="complete"), normal(4, 3), grad=False, **LOOSE)
case("linalg_qr", lambda m, a: m.linalg.qr(a, mode="r"), normal(4, 3), grad=False, **LOOSE)


def weighted_product(u: Any, s: Any, vh: Any) -> Any:
    """Return u @ diag(s ** 2) @ vh, which is unique although the factors are not."""
    k = s.shape[-1]
    return (u[..., :k] * (s * s).unsqueeze(-2)) @ vh[..., :k, :]


for _shape in ((4, 3), (3, 3), (3, 5), (2, 4, 3)):
    case("linalg_svd", lambda m, a: weighted_product(*m.linalg.svd(a, full_matrices=False)), normal(*_shape), **LOOSE)
case("linalg_svd", lambda m, a: [f.abs() for f in m.linalg.svd(a, full_matrices=False)], normal(3, 4), **LOOSE)
case("linalg_svd", lambda m, a: weighted_product(*m.linalg.svd(a)), normal(4, 3), **LOOSE)
case("linalg_svd", lambda m, a: [f.shape for f in m.linalg.svd(a)], normal(4, 3), grad=False)
case("linalg_svd", lambda m, a: m.svd(a).S + a.svd().S, normal(4, 3), **LOOSE)
case("linalg_svd", lambda m, a: [f.abs() for f in a.svd()], normal(4, 3), **LOOSE)
case("linalg_svdvals", lambda m, a: m.linalg.svdvals(a), normal(2, 4, 3), **LOOSE)
for _uplo in ("L", "U"):
    case("linalg_eigh", lambda m, a, u=_uplo: m.linalg.eigh(symmetric(a), u).eigenvalues, normal(2, 4, 4), **LOOSE)
    case("linalg_eigh", lambda m, a, u=_uplo: m.linalg.eigh(symmetric(a), UPLO=u)[1].abs(), normal(4, 4), **LOOSE)
    case("linalg_eigvalsh", lambda m, a, u=_uplo: m.linalg.eigvalsh(symmetric(a), u), normal(2, 4, 4), **LOOSE)
case("linalg_eigvalsh", lambda m, a: m.linalg.eigvalsh(a, "U"), normal(4, 4), grad=False, **LOOSE)


def real(x: Any) -> Any:
    """Return the real part; PyTorch's eigenvalues are complex even for real ones."""
    return getattr(x, "real", x)


def matrix_square(m: Any, a: Any) -> Any:
    """Return a @ a computed from the eigenvalues and eigenvectors of a."""
    values, vectors = m.linalg.eig(a)
    return real((vectors * (values * values).unsqueeze(-2)) @ m.linalg.inv(vectors))


case("linalg_eig", matrix_square, np.triu(normal(4, 4)) + 3 * np.diag(np.arange(4.0)), **LOOSE)
case("linalg_eig", lambda m, a: [real(x).abs() for x in m.linalg.eig(a)], np.array([[1.0, 0.5], [0.1, 3.0]]), **LOOSE)
case(
    "linalg_eigvals",
    lambda m, a: real(m.linalg.eigvals(a)).sort()[0],
    np.triu(normal(4, 4)) + 3 * np.diag(np.arange(4.0)),
    **LOOSE,
)

for _ord in (2, 1, 3, 0.5, 2.5, math.inf, -math.inf, -1):
    case("linalg_vector_norm", lambda m, x, o=_ord: m.linalg.vector_norm(x, o), normal(3, 4))
    case("linalg_vector_norm", lambda m, x, o=_ord: m.linalg.vector_norm(x, o, dim=1, keepdim=True), normal(3, 4))
    case("linalg_norm", lambda m, x, o=_ord: m.linalg.norm(x, o, dim=-1), normal(2, 3, 4))
case("linalg_vector_norm", lambda m, x: m.linalg.vector_norm(x, dim=(0, 2)), normal(3, 4, 2))
case("linalg_vector_norm", lambda m, x: m.linalg.vector_norm(x, dtype=m.float64), normal(3, 4))
case("linalg_vector_norm", lambda m, x: m.linalg.vector_norm(x, 0, 1), integers(3, 4, high=2) * 1.0, grad=False)
case("linalg_vector_norm", lambda m, x: m.linalg.vector_norm(x, 1.5), normal())
case("linalg_vector_norm", lambda m, x: m.linalg.vector_norm(x, dim=1), normal(3, 0))
for _ord in ("fro", "nuc", math.inf, -math.inf, 1, -1, 2, -2):
    case("linalg_matrix_norm", lambda m, x, o=_ord: m.linalg.matrix_norm(x, o), normal(2, 3, 4), **LOOSE)
    case(
        "linalg_matrix_norm",
        lambda m, x, o=_ord: m.linalg.matrix_norm(x, o, dim=(1, 0), keepdim=True),
        normal(2, 3, 4), **LOOSE,
    )  # fmt: skip
    case("linalg_norm", lambda m, x, o=_ord: m.linalg.norm(x, o), normal(3, 4), **LOOSE)
case("linalg_norm", lambda m, x: m.linalg.norm(x), normal(2, 3, 4))
case("linalg_norm", lambda m, x: m.linalg.norm(x, dim=(0, 1), keepdim=True), normal(2, 3, 4))
for _p in (None, 2, -2):
    case("linalg_cond", lambda m, x, p=_p: m.linalg.cond(x, p), square(3, 3), rtol=1e-3, atol=1e-3)
for _p in (1, "fro", math.inf):  # PyTorch 2.13 fails in the backward of these
    case("linalg_cond", lambda m, x, p=_p: m.linalg.cond(x, p), square(3, 3), grad=False, rtol=1e-3, atol=1e-3)
case("matrix_rank", lambda m, x: m.linalg.matrix_rank(x), singular(2, 4, 4), grad=False)
case("matrix_rank", lambda m, x: m.linalg.matrix_rank(x, atol=1.0), normal(3, 5), grad=False)
case("matrix_rank", lambda m, x: m.linalg.matrix_rank(x + x.mT, hermitian=True), square(3, 3), grad=False)

for _driver in (None, "gelsy", "gelsd", "gelss", "gels"):
    case(
        "linalg_lstsq",
        lambda m, a, b, d=_driver: m.linalg.lstsq(a, b, driver=d),
        normal(5, 3), normal(5, 2), grad=False, **LOOSE,
    )  # fmt: skip
case("linalg_lstsq", lambda m, a, b: m.linalg.lstsq(a, b).solution, normal(5, 3), normal(5, 2), **LOOSE)
case("linalg_lstsq", lambda m, a, b: m.linalg.lstsq(a, b).solution, normal(2, 3, 5), normal(2, 3, 2), **LOOSE)
case(
    "linalg_lstsq",
    lambda m, a, b: m.linalg.lstsq(a, b, driver="gelsd"),
    normal(2, 5, 3),
    normal(2, 5, 1),
    grad=False,
    **LOOSE,
)

for _n in (3, 1, 0, -2, 10):
    case("matrix_power", lambda m, a, n=_n: m.matrix_power(a, n), square(2, 3, 3) / 3, **LOOSE)
case("matrix_power", lambda m, a: a.matrix_power(2) + m.linalg.matrix_power(a, 3), normal(3, 3), **LOOSE)
case(
    "linalg_multi_dot", lambda m, *x: m.linalg.multi_dot(x), normal(10, 3), normal(3, 20), normal(20, 2), normal(2, 4),
    **LOOSE,
)  # fmt: skip
case("linalg_multi_dot", lambda m, *x: m.linalg.multi_dot(x), normal(3), normal(3, 4), normal(4))
case("linalg_multi_dot", lambda m, *x: m.linalg.multi_dot(x), normal(2, 3), normal(3))
case("linalg_tensorinv", lambda m, a: m.linalg.tensorinv(a), normal(2, 3, 6), **LOOSE)

case("matrix_exp", lambda m, a: m.linalg.matrix_exp(a), normal(2, 3, 3), **LOOSE)
case("matrix_exp", lambda m, a: m.matrix_exp(a * 4) + a.matrix_exp(), normal(3, 3), rtol=1e-3, atol=1e-3)
case("linalg_diagonal", lambda m, a: m.linalg.diagonal(a, offset=1), normal(2, 3, 4))
case("linalg_tensorsolve", lambda m, a, b: m.linalg.tensorsolve(a, b), normal(2, 3, 6), normal(2, 3), **LOOSE)
case("linalg_tensorsolve", lambda m, a, b: m.linalg.tensorsolve(a, b, dims=(0, 2)), normal(2, 6, 3), normal(6), **LOOSE)
case("linalg_vander", lambda m, x: m.linalg.vander(x), normal(2, 3))
case("linalg_vander", lambda m, x: m.linalg.vander(x, N=5), normal(3))
case("linalg_cross", lambda m, a, b: m.linalg.cross(a, b), normal(4, 3), normal(4, 3))
case("linalg_cross", lambda m, a, b: m.linalg.cross(a, b, dim=0), normal(3, 4), normal(3, 1))
case("linalg_cross", lambda m, a, b: m.linalg.cross(a, b), integers(4, 3), integers(1, 3), grad=False)
case("cross", lambda m, a, b: m.cross(a, b, dim=1) + a.cross(b, 1), normal(4, 3), normal(4, 3))
case("linalg_vecdot", lambda m, a, b: m.linalg.vecdot(a, b), normal(4, 3), normal(3))
case("linalg_vecdot", lambda m, a, b: m.linalg.vecdot(a, b, dim=0), normal(4, 3), normal(4, 3))
case("kron", lambda m, a, b: m.kron(a, b), normal(2, 3), normal(4, 2))
case("kron", lambda m, a, b: a.kron(b), normal(2, 3), normal(2))
case("kron", lambda m, a, b: a.kron(b), normal(), normal(2, 3))
case("inner", lambda m, a, b: m.inner(a, b), normal(2, 3), normal(4, 3))
case("inner", lambda m, a, b: a.inner(b), normal(3), normal(3))
case("inner", lambda m, a, b: a.inner(b), normal(), normal(3))
case("tensordot", lambda m, a, b: m.tensordot(a, b), normal(2, 3, 4), normal(3, 4, 5))
case("tensordot", lambda m, a, b: m.tensordot(a, b, dims=1), normal(2, 3), normal(3, 5))
case("tensordot", lambda m, a, b: m.tensordot(a, b, 0), normal(2), normal(3))
case("tensordot", lambda m, a, b: m.tensordot(a, b, dims=([0, -1], [1, 2])), normal(2, 3, 4), normal(5, 2, 4))
case("tensordot", lambda m, a, b: m.tensordot(a, b, dims=([1], [0])), normal(2, 0), normal(0, 3))

for _p in (2.0, 1.0, 3.0, 0.5, math.inf):
    case("cdist", lambda m, a, b, p=_p: m.cdist(a, b, p), normal(4, 3), normal(5, 3))
case(
    "cdist", lambda m, a, b: m.cdist(a, b, 0.0), integers(4, 3, high=2) * 1.0, integers(5, 3, high=2) * 1.0, grad=False
)
case("cdist", lambda m, a, b: m.cdist(a, b), normal(2, 1, 4, 3), normal(5, 2, 3))
case("cdist", lambda m, a, b: m.cdist(a, b), normal(30, 3), normal(4, 3), **LOOSE)
case(
    "cdist",
    lambda m, a, b: m.cdist(a, b, compute_mode="donot_use_mm_for_euclid_dist"),
    normal(2, 30, 3), normal(2, 28, 3),
)  # fmt: skip
case("cdist", lambda m, a, b: m.cdist(a, b), normal(0, 3), normal(4, 3))

EINSUMS: dict[str, tuple[tuple[int, ...], ...]] = {
    "ij,jk->ik": ((2, 3), (3, 4)),
    "ij,jk": ((2, 3), (3, 4)),
    "ba,cb": ((2, 3), (4, 2)),
    "ij->ji": ((2, 3),),
    "ij": ((2, 3),),
    "ba": ((2, 3),),
    "ii": ((3, 3),),
    "ii->i": ((3, 3),),
    "ij->": ((2, 3),),
    "ij->j": ((2, 3),),
    "i,i": ((3,), (3,)),
    "i,j->ij": ((2,), (3,)),
    "i,j->ji": ((2,), (3,)),
    "ij,ij->ij": ((2, 3), (2, 3)),
    "ij,ij->i": ((2, 3), (2, 3)),
    "bij,bjk->bik": ((2, 3, 4), (2, 4, 5)),
    "bhqd,bhkd->bhqk": ((2, 2, 3, 4), (2, 2, 5, 4)),
    "...ij,...jk->...ik": ((2, 3, 4), (4, 5)),
    "...ij,...jk": ((2, 1, 3, 4), (5, 4, 2)),
    "...,...": ((2, 3), (3,)),
    "i...->...": ((2, 3, 4),),
    "...i->i...": ((2, 3, 4),),
    "ij,j,ik->k": ((2, 3), (3,), (2, 4)),
    "bn,anm,bm->ba": ((2, 3), (4, 3, 5), (2, 5)),
    "iij,jk->ik": ((2, 2, 3), (3, 4)),
    "ijk,k->": ((2, 3, 4), (4,)),
    "ij,jk->ik ": ((1, 3), (3, 4)),
    "ij,kj->ik": ((2, 3), (4, 1)),
    "bij,bjk->bik ": ((1, 3, 4), (2, 4, 5)),
    ",ij->ij": ((), (2, 3)),
    "Ab,bA": ((2, 3), (3, 2)),
    "ij,jk->ki": ((2, 0), (0, 4)),
}
for _equation, _shapes in EINSUMS.items():
    case("einsum", lambda m, *x, e=_equation: m.einsum(e, *x), *(normal(*s) for s in _shapes))
case("einsum", lambda m, a, b: m.einsum("ij,jk->ik", [a, b]), normal(2, 3), normal(3, 4))
case("einsum", lambda m, a, b: m.einsum(a, [0, 1], b, [1, 2], [0, 2]), normal(2, 3), normal(3, 4))
case("einsum", lambda m, a, b: m.einsum(a, [..., 1], b, [1, 0]), normal(2, 3), normal(3, 4))
case("einsum", lambda m, a, b: m.einsum("i,i->i", a, b), integers(4), booleans(4).astype(np.int64), grad=False)
