"""Rules of solutions and decompositions of matrices: what the closures compute, by ops."""

from __future__ import annotations

from tallow.autograd.recorded.definitions import defined, formed, with_value
from tallow.autograd.recorded.rules import rule
from tallow.autograd.recorded.saved import Gradients, Saved, connected
from tallow.core.apply import apply
from tallow.core.tensor import Tensor, from_array
from tallow.devices import array_module
from tallow.ops.decomposition import linalg_eigh, linalg_svd
from tallow.ops.diagonals import diag_embed, tril, triu
from tallow.ops.joining import cat
from tallow.ops.linalg import cholesky_solve, cofactors, linalg_det, linalg_inv, linalg_solve, transposed
from tallow.tape.graph import Output


def _output(saved: Saved, name: str, index: int) -> Tensor:
    """Return an output of an op with several, which the closure has under this name."""
    array = saved.constant(name)
    return connected(array, Output(saved.node, index, array.shape, array.dtype))


@rule("linalg_inv")
def _inv(saved: Saved, g: Tensor) -> Gradients:
    b = transposed(saved.result("b"))
    return [-(b @ g @ b)]


@rule("linalg_det")
def _det(saved: Saved, g: Tensor) -> Gradients:
    return [g[..., None, None] * apply(cofactors, saved.operand("A"))]


@rule("cofactors")
def _cofactors(saved: Saved, g: Tensor) -> Gradients:
    saved.ignore("name", "orientation")
    value = saved.entry(0, g.array)
    u, s, vt = map(saved.constant, ("u", "s", "vt"))
    a = formed((u * s[..., None, :]) @ vt, saved.node.edges[0])
    by_inverse = defined(lambda a: apply(linalg_det, a)[..., None, None] * transposed(apply(linalg_inv, a)), (a,), g)
    return [None if each is None else with_value(value, each) for each in by_inverse]


@rule("linalg_slogdet")
def _slogdet(saved: Saved, _: Tensor, g: Tensor) -> Gradients:
    saved.ignore("name")
    return [g[..., None, None] * transposed(apply(linalg_inv, saved.operand("A")))]


@rule("linalg_solve", "linalg_solve_triangular")
def _solve(saved: Saved, g: Tensor) -> Gradients:
    saved.ignore("name")
    value, enter, leave = map(saved.constant, ("x", "enter", "leave"))
    of_a, is_left = saved.inside("of_a"), enter is not transposed
    triangle = {"triu": triu, "tril": tril}[of_a.constant("triangle").__name__] if of_a.has("triangle") else None
    offset = of_a.constant("offset") if triangle else 0

    def form(a: Tensor) -> Tensor:
        """Return the matrix that is read, so that a X = B. Its own transposition gives the gradient."""
        return a if triangle is None else apply(triangle, a, offset)

    a = formed(saved.constant("a"), saved.node.edges[0], lambda a: form(a) if is_left else transposed(form(a)))
    x = enter(connected(leave(value), saved.node))
    of_b = apply(linalg_solve, transposed(a), enter(g))
    of_product = -(of_b @ transposed(x))
    return [form(of_product if is_left else transposed(of_product)), leave(of_b)]


@rule("cholesky_solve")
def _cholesky_solve(saved: Saved, g: Tensor) -> Gradients:
    saved.ignore("name", "solve")
    upper, factor, x = saved.constant("upper"), saved.operand("L", 1), saved.result("x")
    of_b = apply(cholesky_solve, g, factor, upper)
    of_product = of_b @ transposed(x)
    of_product = of_product + transposed(of_product)
    return [of_b, -(factor @ of_product if upper else of_product @ factor)]


@rule("linalg_cholesky")
def _cholesky(saved: Saved, g: Tensor) -> Gradients:
    saved.ignore("name")
    factor, upper = saved.constant("factor"), saved.constant("upper")
    lower = transposed(connected(transposed(factor), saved.node)) if upper else connected(factor, saved.node)
    phi = (transposed(lower) @ (transposed(g) if upper else g)).tril()
    inverse = apply(linalg_inv, lower)
    of_a = transposed(inverse) @ _half_diagonal(phi) @ inverse
    return [(of_a + transposed(of_a)) / 2]


def _eye(like: Tensor) -> Tensor:
    return from_array(array_module(like.array).eye(like.shape[-1], dtype=like.array.dtype))


def _half_diagonal(a: Tensor) -> Tensor:
    return a * (1 - 0.5 * _eye(a))


def _differences(values: Tensor) -> Tensor:
    """Return v_j - v_i, with ones on the diagonal."""
    return values[..., None, :] - values[..., :, None] + _eye(values)


@rule("linalg_eigh")
def _eigh(saved: Saved, g: Tensor, gv: Tensor) -> Gradients:
    saved.ignore("name")
    values, vectors = _output(saved, "values", 0), _output(saved, "vectors", 1)
    turn = transposed(vectors) @ gv
    inner = (turn - transposed(turn)) / (2 * _differences(values)) + apply(diag_embed, g)
    return [vectors @ inner @ transposed(vectors)]


@rule("linalg_eigvalsh")
def _eigvalsh(saved: Saved, g: Tensor) -> Gradients:
    saved.ignore("name")
    uplo = saved.constant("uplo")
    return defined(lambda a: apply(linalg_eigh, a, uplo)[0], (saved.operand("A"),), g)


@rule("linalg_svdvals")
def _svdvals(saved: Saved, g: Tensor) -> Gradients:
    saved.ignore("name")
    return defined(lambda a: apply(linalg_svd, a, False)[1], (saved.operand("A"),), g)


@rule("linalg_svd")
def _svd(saved: Saved, gu: Tensor, gs: Tensor, gvt: Tensor) -> Gradients:
    saved.ignore("name")
    m, n = saved.constant("A").shape[-2:]
    k = saved.constant("k")
    s = _output(saved, "s", 1)
    u, vt = _output(saved, "full_u", 0)[..., :k], _output(saved, "full_vt", 2)[..., :k, :]
    gu, gv, v = gu[..., :k], transposed(gvt[..., :k, :]), transposed(vt)
    gaps, row, column = _differences(s * s), s[..., None, :], s[..., :, None]
    u_gu, v_gv = transposed(u) @ gu, vt @ gv
    turned = (u_gu - transposed(u_gu)) / gaps * row + column * (v_gv - transposed(v_gv)) / gaps
    of_a = u @ (turned + apply(diag_embed, gs)) @ vt
    if m > k:
        of_a = of_a + (gu - u @ u_gu) / row @ vt
    if n > k:
        of_a = of_a + u @ (transposed(gv - v @ v_gv) / column)
    return [of_a]


@rule("linalg_qr")
def _qr(saved: Saved, gq: Tensor, gr: Tensor) -> Gradients:
    saved.ignore("name", "mode")
    m, n, a = saved.constant("m"), saved.constant("n"), saved.operand("A")
    q, r = _output(saved, "q", 0), _output(saved, "r", 1)
    if m >= n:
        return [_of_tall(q, r, gq, gr)]
    right, gr_right = a[..., m:], gr[..., m:]
    of_left = _of_tall(q, r[..., :m], gq + right @ transposed(gr_right), gr[..., :m])
    return [apply(cat, [of_left, q @ gr_right], -1)]


def _of_tall(q: Tensor, r: Tensor, gq: Tensor, gr: Tensor) -> Tensor:
    half = _half_diagonal((gr @ transposed(r) - transposed(q) @ gq).triu())
    total = gq + q @ (half + transposed(half))
    return transposed(apply(linalg_solve, r, transposed(total)))


@rule("linalg_pinv")
def _pinv(saved: Saved, g: Tensor) -> Gradients:
    saved.ignore("name")
    a, p = saved.operand("A"), saved.result("p")
    gt, pt = transposed(g), transposed(p)
    k = gt @ p
    return [k @ pt - transposed(p @ k) - a @ p @ k @ pt + pt @ p @ (gt - k @ a)]
