"""Matrix inverses, determinants and linear systems.

A singular matrix raises LinAlgError. On a GPU that check waits for the device, as in PyTorch.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from tallow import return_types
from tallow.devices import array_module, linalg_errors
from tallow.errors import ArgumentTypeError, LinAlgError, ShapeError
from tallow.ops.checks import expect_float
from tallow.ops.complex_rules import conj
from tallow.ops.maps import with_value
from tallow.ops.matmul import product
from tallow.ops.reduction import products_of_others
from tallow.ops.second_order import Derived, Gradients, Unread
from tallow.ops.table import Array, Result, op


def transposed(a: Array) -> Array:
    """Return a view with the last two axes swapped."""
    return a.swapaxes(-1, -2)


def adjoint(a: Any) -> Any:
    """Return the conjugate transpose of an array, or of a Tensor; of real numbers, a view."""
    a = a.swapaxes(-1, -2)
    return a.conj() if getattr(a, "array", a).dtype.kind == "c" else a


def times(name: str, *factors: Array) -> Array:
    """Return the matrix product of several factors, from the left."""
    value, *rest = factors
    for factor in rest:
        value = product(value, factor, name)
    return value


def expect_matrices(name: str, *operands: Array) -> None:
    """Raise DtypeError or ShapeError unless all operands are floating-point matrices, or batches of them."""
    expect_float(name, *operands)
    for a in operands:
        if a.ndim < 2:
            raise ShapeError(f"{name}: the input tensor must have at least 2 dimensions, got shape {a.shape}")


def expect_square(name: str, a: Array) -> None:
    """Raise DtypeError or ShapeError unless the operand is a square floating-point matrix, or a batch of them."""
    expect_matrices(name, a)
    if a.shape[-1] != a.shape[-2]:
        raise ShapeError(f"{name}: expected square matrices, got {a.shape[-2]} by {a.shape[-1]} in shape {a.shape}")


def lapack(name: str, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Call a numpy.linalg function, and translate its errors.

    Raises: LinAlgError.
    """
    try:
        with linalg_errors(args[0]):
            result = function(*args, **kwargs)
    except np.linalg.LinAlgError:
        raise _failure(name, args[0]) from None
    if FAILS_SILENTLY and _is_nan(result if hasattr(result, "dtype") else result[0]) and not _is_nan(args[0]):
        raise _failure(name, args[0])
    if name in ("linalg.inv", "linalg.solve") and type(args[0]) is not np.ndarray:
        result = result + (args[0] * 0).sum(axis=(-2, -1), keepdims=True)  # cuSOLVER passes over a NaN
    return result


def _failure(name: str, a: Array) -> LinAlgError:
    words = name.removeprefix("linalg.").split("_")[0]
    reason = FAILURES.get(words, "the iteration did not converge")
    hint = "add a small multiple of the identity, or use linalg.pinv or linalg.lstsq"
    return LinAlgError(f"{name}: {reason}; shape {a.shape}", hint=hint)


FAILURES = {
    "cholesky": "the input is not positive-definite",
    "inv": "singular matrix",
    "slogdet": "singular matrix",
    "solve": "singular matrix",
}


# NumPy detects LAPACK's failures by the floating-point status, which WebAssembly lacks. There only the NaN in the
# result shows a failure.
FAILS_SILENTLY = sys.platform == "emscripten"


def _is_nan(x: Array) -> bool:
    return bool(np.isnan(x).any())


@op("linalg", refuses="half", batched="leading")
def linalg_inv(A: Array) -> Result:
    """Return the inverse B of square matrices.

    dA = -Bᵀ g Bᵀ

    Shapes:  (..., N, N) -> the same
    Raises:  LinAlgError for a singular matrix
    """
    expect_square("linalg.inv", A)
    value = lapack("linalg.inv", array_module(A).linalg.inv, A)
    return value, lambda g: (-times("linalg.inv", transposed(value), g, transposed(value)),)


@linalg_inv.second
def _(g: Derived, *, value: Derived) -> Gradients:
    return [-(transposed(value) @ g @ transposed(value))]


@op("", batched="leading")
def cofactors(A: Array) -> Result:
    """Return d det(A) / dA, for singular matrices too.

    With A = U S Vᵀ it is det(U) det(V) · U diag(Π_{k ≠ i} s_k) Vᵀ.

    dA = det(U) det(V) · U (diag(P diag M) - P ⊙ Mᵀ) Vᵀ,  M = Uᵀ g V,  P_ij = Π_{k ≠ i, j} s_k, 0 on the diagonal
    """
    name = "linalg.det"
    xp = array_module(A)
    u, s, vt = xp.linalg.svd(A, full_matrices=False)
    orientation = (xp.linalg.det(u) * xp.linalg.det(vt))[..., None, None]

    value = conj(times(name, u * products_of_others(s, s.ndim - 1)[..., None, :], vt)) * orientation
    return value, lambda g: (_of_cofactors(g, u, s, vt) * orientation,)


def _of_cofactors(g: Array, u: Array, s: Array, vt: Array) -> Array:
    name, xp = "linalg.det", array_module(g)
    if u.dtype.kind == "c":
        inverse = xp.linalg.inv(times(name, u * s[..., None, :], vt))
        trace = (g * transposed(inverse)).sum(axis=(-1, -2), keepdims=True)
        scale = s.prod(axis=-1)[..., None, None]
        return scale * transposed(inverse * trace - times(name, inverse, g, inverse))
    eye = xp.eye(s.shape[-1], dtype=s.dtype)
    pairs = products_of_others(xp.where(eye, 1, s[..., None, :]), s.ndim) * (1 - eye)
    m = times(name, transposed(u), g, transposed(vt))
    own = times(name, pairs, m.diagonal(axis1=-2, axis2=-1)[..., None])
    return times(name, u, own * eye - pairs * transposed(m), vt)


@cofactors.second
def _(g: Derived, *, A: Unread, u: Array, s: Array, vt: Array, orientation: Array) -> Gradients:
    """Return the value of the closure, as det(A) (B tr(g B) - B g B)ᵀ with B = A⁻¹: the matrix must have one now."""
    a = with_value.call(A, (u * s[..., None, :]) @ vt)
    det, inverse = linalg_det.call(a)[..., None, None], linalg_inv.call(a)
    trace = (g * transposed(inverse)).sum((-1, -2), keepdim=True)
    by_inverse = det * transposed(inverse * trace - inverse @ g @ inverse)
    return [with_value.call(by_inverse, _of_cofactors(g.array, u, s, vt) * orientation)]


@op("linalg", refuses="half", batched="leading")
def linalg_det(A: Array) -> Result:
    """Return the determinant of square matrices.

    Shapes:  (..., N, N) -> (...)
    """
    expect_square("linalg.det", A)
    return array_module(A).linalg.det(A), lambda g: (cofactors.function(A)[0] * g[..., None, None],)


@linalg_det.second
def _(g: Derived, *, A: Derived) -> Gradients:
    return [g[..., None, None] * cofactors.call(A)]


@op("linalg", result=return_types.linalg_slogdet, refuses="half", batched="leading")
def linalg_slogdet(A: Array) -> Result:
    """Return the sign and ln |det A| of square matrices: (0, -inf) for a singular matrix.

    dA = g A⁻ᵀ

    Shapes:  (..., N, N) -> (...), (...)
    """
    expect_square("linalg.slogdet", A)
    xp = array_module(A)
    sign, logarithm = xp.linalg.slogdet(A)
    name = "linalg.slogdet"
    turn = sign if A.dtype.kind == "c" else None

    def backward(g_sign: Array, g: Array) -> tuple[Array]:
        if turn is not None:
            g = g + 1j * (turn.conj() * g_sign).imag
        return (adjoint(lapack(name, xp.linalg.inv, A)) * g[..., None, None],)

    return (sign, logarithm), backward


@linalg_slogdet.second(unneeded="name", turn="value0")
def _(g_sign: Derived, g: Derived, *, A: Derived, turn: Derived) -> Gradients:
    if turn is not None:
        g = g + 1j * (turn.conj() * g_sign).imag
    return [g[..., None, None] * adjoint(linalg_inv.call(A))]


Reform = Callable[[Array], Array]


def _form(name: str, a: Array, b: Array, left: bool) -> tuple[Reform, Reform]:
    """Return functions that convert b to the form A X = B, and X back from it."""
    expect_square(name, a)
    is_vector = b.ndim == 1 or (a.ndim == b.ndim + 1 and a.shape[:-1] == b.shape)
    if is_vector and not left:
        raise ShapeError(f"{name}: vectors as B, of shape {b.shape}, need left=True")
    if (not is_vector and b.ndim < 2) or b.shape[-1 if is_vector or not left else -2] != a.shape[-1]:
        raise ShapeError(f"{name}: shapes do not fit: A {a.shape}, B {b.shape}, left={left}")
    if is_vector:
        return lambda x: x[..., None], lambda x: x[..., 0]
    return (_same, _same) if left else (transposed, transposed)


def _same(x: Array) -> Array:
    return x


@op("linalg", refuses="half", batched="itself")
def linalg_solve(A: Array, B: Array, *, left: bool = True) -> Result:
    """Return X in A X = B, or in X A = B if not `left`.

    dB = A⁻ᵀ g,  dA = -dB Xᵀ

    Shapes:  A (..., N, N), B (..., N, K) or vectors (..., N) -> as B; batch dimensions broadcast
    Raises:  ShapeError, LinAlgError for a singular A
    """
    name = "linalg.solve"
    form = _form(name, A, B, left)
    return _solve(name, A, B, form) if left else _solve(name, transposed(A), B, form, transposed)


def _solve(name: str, a: Array, b: Array, form: tuple[Reform, Reform], of_a: Reform = _same) -> Result:
    """Return X in a X = b, given functions that convert b to this form, X back, and the gradient of a."""
    enter, leave = form
    value = leave(_solution(name, a, enter(b)))

    def backward(g: Array) -> tuple[Any, Any]:
        db = _solution(name, transposed(a), enter(g))
        return lambda: of_a(-product(db, transposed(enter(value)), name)), lambda: leave(db)

    return value, backward


def _solution(name: str, a: Array, b: Array) -> Array:
    """Return X in a X = b, matrices whose batch dims broadcast."""
    xp = array_module(a)
    shape = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    a, b = (xp.broadcast_to(m, (*shape, *m.shape[-2:])) for m in (a, b))  # CuPy requires equal batch dims
    if not b.size:  # CuPy does not accept zero columns
        return xp.zeros(b.shape, b.dtype)
    solution: Array = lapack(name, xp.linalg.solve, a, b)
    return solution


@linalg_solve.second(unneeded="name of_a")
def _(g: Derived, *, A: Unread, a: Derived, value: Derived, enter: Reform, leave: Reform) -> Gradients:
    return _of_system(g, A, a, value, (enter, leave), _same)


def _of_system(
    g: Derived, A: Unread, a: Derived, value: Derived, form: tuple[Reform, Reform], part: Reform
) -> Gradients:
    """Return the gradients of A and B as tensors, given the part of A that is read."""
    enter, leave = form
    turn = transposed if enter is transposed else _same
    a = a if A is None else with_value.call(turn(part(A)), a)
    of_b = linalg_solve.call(transposed(a), enter(g))
    return [part(turn(-(of_b @ transposed(enter(value))))), leave(of_b)]


@op("linalg", refuses="half", batched="itself")
def linalg_solve_triangular(
    A: Array, B: Array, *, upper: bool, left: bool = True, unitriangular: bool = False
) -> Result:
    """Return X in A X = B, or in X A = B if not `left`, for a triangular A; its other triangle is not read.

    Args:
        unitriangular: the diagonal is taken as ones, and is not read either.

    Shapes:  A (..., N, N), B (..., N, K), or (..., K, N) if not `left` -> as B; batch dimensions broadcast
    Raises:  ShapeError, LinAlgError for a zero on the diagonal
    """
    name = "linalg.solve_triangular"
    expect_square(name, A)
    expect_matrices(name, B)
    if B.shape[-2 if left else -1] != A.shape[-1]:
        raise ShapeError(f"{name}: shapes do not fit: A {A.shape}, B {B.shape}, left={left}")
    xp = array_module(A)
    offset = (1 if upper else -1) if unitriangular else 0

    def part(m: Array) -> Array:
        """Return the triangle that is read."""
        return xp.triu(m, offset) if upper else xp.tril(m, offset)

    a = part(A)
    if unitriangular:
        a = a + xp.eye(A.shape[-1], dtype=A.dtype)
    if left:
        return _solve(name, a, B, (_same, _same), part)
    return _solve(name, transposed(a), B, (transposed, transposed), lambda da: part(transposed(da)))


@linalg_solve_triangular.second(unneeded="name of_a")
def _(
    g: Derived, *, A: Unread, a: Derived, value: Derived, enter: Reform, leave: Reform, upper: bool, offset: int
) -> Gradients:
    return _of_system(g, A, a, value, (enter, leave), lambda m: m.triu(offset) if upper else m.tril(offset))


@op(refuses="half", batched="itself")
def cholesky_solve(input: Array, L: Array, upper: bool = False) -> Result:
    """Return X in A X = input, where A = L Lᵀ, or Lᵀ L if `upper`. The other triangle of L is not read.

    dB = A⁻¹ g,  dL = -(dB Xᵀ + X dBᵀ) L, or -L (dB Xᵀ + X dBᵀ) if `upper`

    dL is not zero in the other triangle: as in PyTorch, it is the gradient of L as a whole matrix in L Lᵀ, so that it
    equals that of `linalg.solve` with the product. `tril` of the factor gives the gradient of the triangle alone.

    Shapes:  input (..., N, K), L (..., N, N) -> (..., N, K); batch dimensions broadcast
    Raises:  ShapeError, LinAlgError for a zero on the diagonal
    """
    name = "cholesky_solve"
    expect_square(name, L)
    expect_matrices(name, input)
    if input.shape[-2] != L.shape[-1]:
        raise ShapeError(f"{name}: shapes do not fit: input {input.shape}, L {L.shape}")
    xp = array_module(L)
    lower = adjoint(xp.triu(L)) if upper else xp.tril(L)

    def solve(b: Array) -> Array:
        return _solution(name, adjoint(lower), _solution(name, lower, b))

    value = solve(input)

    def backward(g: Array) -> tuple[Any, Any]:
        db = solve(g)

        def of_factor() -> Array:
            of_product = times(name, db, adjoint(value))
            of_product = of_product + adjoint(of_product)
            return -(times(name, L, of_product) if upper else times(name, of_product, L))

        return lambda: db, of_factor

    return value, backward


@cholesky_solve.second(unneeded="name lower")
def _(g: Derived, *, L: Derived, value: Derived, upper: bool) -> Gradients:
    of_b = cholesky_solve.call(g, L, upper)
    of_product = of_b @ adjoint(value)
    of_product = of_product + adjoint(of_product)
    return [of_b, -(L @ of_product if upper else of_product @ L)]


@op("linalg", refuses="half", batched="leading")
def linalg_pinv(A: Array, *, atol: object = None, rtol: object = None, hermitian: bool = False) -> Result:
    """Return the pseudo-inverse: A with its singular values inverted, those below max(atol, rtol · maximum) dropped.

    Args:
        rtol: max(M, N) · eps unless atol is given.
        hermitian: whether A is symmetric; only its lower triangle is read then.

    Shapes:  (..., M, N) -> (..., N, M)
    Source:  the gradient is that of Golub & Pereyra 1973, eq. 4.12
    """
    name = "linalg.pinv"
    expect_matrices(name, A)
    xp = array_module(A)
    if hermitian:
        expect_square(name, A)
        values, vectors = lapack(name, xp.linalg.eigh, A)
        u, s, vt = vectors, values, adjoint(vectors)
    else:
        u, s, vt = lapack(name, xp.linalg.svd, A, full_matrices=False)
    is_nonzero = xp.abs(s) > cutoff(xp.abs(s), A.shape, atol, rtol)[..., None]
    inverse = xp.where(is_nonzero, 1 / s, s.dtype.type(0))
    value = times(name, adjoint(vt) * inverse[..., None, :], adjoint(u))

    def backward(g: Array) -> tuple[Array]:
        gt, pt = adjoint(g), adjoint(value)
        k = times(name, gt, value)
        k_pt = times(name, k, pt)
        from_rows = times(name, pt, value, gt - times(name, k, A))
        return (k_pt - adjoint(times(name, value, k)) - times(name, A, value, k_pt) + from_rows,)

    return value, backward


@linalg_pinv.second(unneeded="name")
def _(g: Derived, *, A: Derived, value: Derived) -> Gradients:
    gt, pt = adjoint(g), adjoint(value)
    k = gt @ value
    return [k @ pt - adjoint(value @ k) - A @ value @ k @ pt + pt @ value @ (gt - k @ A)]


def cutoff(sizes: Array, shape: tuple[int, ...], atol: Any, rtol: Any) -> Array:
    """Return the size up to which a singular value counts as zero, for each matrix.

    Shapes:  sizes (..., K) -> (...)
    """
    xp = array_module(sizes)
    for name, value in (("atol", atol), ("rtol", rtol)):
        if isinstance(value, list | tuple | str):
            raise ArgumentTypeError(f"{name} must be a number or a Tensor, not {type(value).__name__}")
    if rtol is None:
        rtol = max(shape[-2:]) * np.finfo(sizes.dtype).eps if atol is None else 0.0
    greatest = sizes.max(axis=-1) if sizes.shape[-1] else xp.zeros(sizes.shape[:-1], sizes.dtype)
    return xp.maximum(xp.asarray(0.0 if atol is None else atol, sizes.dtype), greatest * xp.asarray(rtol, sizes.dtype))


@op("", refuses="half", batched="leading")
def matrix_rank(A: Array, atol: object = None, rtol: object = None, hermitian: bool = False) -> Result:
    """Return the number of singular values of each matrix above the cutoff.

    Shapes:  (..., M, N) -> (...)
    Dtypes:  int64
    """
    name = "linalg.matrix_rank"
    expect_matrices(name, A)
    xp = array_module(A)
    if hermitian:
        expect_square(name, A)
        sizes = xp.abs(lapack(name, xp.linalg.eigvalsh, A))
    else:
        sizes = lapack(name, xp.linalg.svd, A, compute_uv=False)
    return (sizes > cutoff(sizes, A.shape, atol, rtol)[..., None]).sum(axis=-1, dtype=np.int64), None
