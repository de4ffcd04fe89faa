"""torch.autograd.functional: the Jacobian and the Hessian of a function, and products with them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from tallow.autograd.api import grad
from tallow.core.creation import eye
from tallow.core.tensor import Tensor
from tallow.errors import ArgumentError, ArgumentTypeError, GraphError, ShapeError, UnsupportedError
from tallow.functions.batching.vmap import vmap
from tallow.functions.like import zeros_like
from tallow.lazy_names import names_of
from tallow.tape.modes import enable_grad, mode

__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]

Tensors = tuple[Tensor, ...]
# Elements of the largest operand or result in a batch of rows: what is between may be ten times as much.
AT_ONCE = 2**20


def vjp(
    func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """Return func(*inputs), and the product of `v` with the Jacobian: a gradient for each input.

    Args:
        inputs: a tensor or a tuple of tensors.
        v: of the outputs' shapes; optional for an output of one element.
        create_graph: record the derivatives, so that they can be differentiated themselves.
        strict: raise GraphError for an output or input that nothing depends on, in place of zeros.

    Raises: ShapeError if `v` does not fit the outputs; UnsupportedError for `create_graph` and an op without a rule.
    """
    run = _Call("vjp", func, inputs, create_graph, strict)
    products = gradients(run.outputs, run.inputs, _vectors("vjp", v, run.outputs), create_graph)
    return run.results(), _alike(products, run.is_one_input)


def jacobian(
    func: Callable[..., Any], inputs: Any, create_graph: bool = False, strict: bool = False, vectorize: bool = False,
    strategy: str = "reverse-mode",
) -> Any:  # fmt: skip
    """Return the derivatives of each element of the outputs by each element of the inputs.

    A pass takes the output elements all at once, if the ops have rules of the second order.

    Shapes:  output (A...), input (B...) -> (A..., B...); a tuple for several inputs, and a tuple of these for several
             outputs

    Args:
        inputs, create_graph, strict: as `vjp`.
        vectorize, strategy: have no effect: the values are the same.
    """
    run = _Call("jacobian", func, inputs, create_graph, strict)
    rows = [_alike(rows_of(y, run.inputs, create_graph), run.is_one_input) for y in run.outputs]
    return _alike(tuple(rows), run.is_one_output)


def jvp(
    func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """Return func(*inputs), and the product of the Jacobian with `v`: the change of the outputs as the inputs move.

    It takes two backward passes, see `Pushforward`.

    Args:
        inputs, create_graph, strict: as `vjp`.
        v: of the inputs' shapes; optional for an input of one element.
    """
    run = _Call("jvp", func, inputs, create_graph, strict)
    products = Pushforward(run.outputs, run.inputs)(_vectors("jvp", v, run.inputs), create_graph)
    return run.results(), _alike(run.kept(products), run.is_one_output)


def hessian(
    func: Callable[..., Any], inputs: Any, create_graph: bool = False, strict: bool = False, vectorize: bool = False,
    outer_jacobian_strategy: str = "reverse-mode",
) -> Any:  # fmt: skip
    """Return the second derivatives of a function with one number as its result.

    Shapes:  inputs (A...) -> (A..., A...); a tuple of tuples for several inputs: [i][j] is by input i and then by j

    Args:
        inputs, create_graph, strict: as `vjp`.
        vectorize, outer_jacobian_strategy: have no effect: the values are the same.

    Raises: UnsupportedError for an op whose gradient cannot be differentiated
    """
    run = _Call("hessian", func, inputs, create_graph, strict, is_twice=True)
    rows = [rows_of(g, run.inputs, create_graph) for g in run.gradient()]
    return _alike(tuple(_alike(run.kept(row), run.is_one_input) for row in rows), run.is_one_input)


def hvp(
    func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """Return func(*inputs), one number, and the product of its Hessian with `v`. It takes two backward passes.

    Args:
        inputs, create_graph, strict: as `vjp`.
        v: of the inputs' shapes; optional for an input of one element.

    Raises: as `hessian`
    """
    run = _Call("hvp", func, inputs, create_graph, strict, is_twice=True)
    products = gradients(run.gradient(), run.inputs, _vectors("hvp", v, run.inputs), create_graph)
    return run.results(), _alike(run.kept(products), run.is_one_input)


def vhp(
    func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """Return func(*inputs), and the product of `v` with its Hessian: as `hvp`, because a Hessian is symmetric."""
    return hvp(func, inputs, v, create_graph, strict)


def rows_of(
    output: Tensor, inputs: Sequence[Tensor], create_graph: bool = False, chunk_size: int | None = None
) -> Tensors:
    """Return the Jacobian of one output by each input, of the shapes (*output.shape, *input.shape).

    Args:
        chunk_size: the number of rows to compute at once; by default as many as have `AT_ONCE` elements.
    """
    count = output.numel()
    if not count:
        return tuple(x.new_zeros((*output.shape, *x.shape)) for x in inputs)
    seeds = eye(count, dtype=output.dtype, device=output.device).reshape(count, *output.shape)
    chunk_size = chunk_size or _at_once([output, *inputs])

    def row(seed: Tensor) -> Tensors:
        return gradients((output,), inputs, (seed,), create_graph)

    rows = vmap(row, randomness="same", chunk_size=chunk_size)(seeds)
    return tuple(row.reshape((*output.shape, *x.shape)) for x, row in zip(inputs, rows, strict=True))


def _at_once(tensors: Sequence[Tensor]) -> int:
    """Return for how many elements of a batch to compute at once what has these operands and results."""
    return max(1, AT_ONCE // max(1, *[x.numel() for x in tensors]))


def gradients(
    outputs: Sequence[Tensor], inputs: Sequence[Tensor], seeds: Sequence[Tensor], create_graph: bool = False
) -> Tensors:
    """Return the gradients of outputs, zeros where there are none. The graph is kept."""
    pairs = [(y, seed) for y, seed in zip(outputs, seeds, strict=True) if y.requires_grad]
    if not pairs:
        return tuple(zeros_like(x) for x in inputs)
    ys, vs = zip(*pairs, strict=True)
    found = grad(ys, inputs, vs, retain_graph=True, create_graph=create_graph, allow_unused=True)
    return tuple(zeros_like(x) if g is None else g for x, g in zip(inputs, found, strict=True))


class Run:
    """A call of a function on tensors by which it is differentiated.

    Attributes:
        inputs: the tensors that the function gets. They are leaves of a graph of their own, but views of tensors that
            are parts of an outer graph, if it is followed.
        returned: what the function has returned, and `outputs`, the tensors in it.
        is_recorded: whether results and derivatives are parts of the outer graph.
    """

    outputs: Tensors

    def __init__(
        self, name: str, call: Callable[[Tensors], Any], tensors: Sequence[Tensor], follows_outer: bool = True
    ) -> None:
        self.name, self.is_recorded = name, False
        with enable_grad():
            self.inputs: Tensors = tuple(
                x.view_as(x) if follows_outer and x.requires_grad else x.detach().requires_grad_() for x in tensors
            )
            self.returned = call(self.inputs)

    def kept(self, tensors: Iterable[Tensor]) -> Tensors:
        """Return results or derivatives, without their history if they are no parts of the outer graph."""
        return tuple(tensors if self.is_recorded else (t.detach() for t in tensors))


class _Call(Run):
    """A run on arguments that are a tensor, or a tuple of them.

    Args:
        create_graph: record results and derivatives.
        strict: raise GraphError for an output or input that nothing depends on.
        is_twice: the derivatives are differentiated, whether they are recorded or not.
    """

    def __init__(
        self, name: str, func: Callable[..., Any], inputs: Any, create_graph: bool, strict: bool, is_twice: bool = False
    ) -> None:
        self.is_one_input = isinstance(inputs, Tensor)
        super().__init__(name, lambda xs: func(*xs), _tensors(name, "inputs", inputs), create_graph or is_twice)
        self.is_recorded = create_graph
        self.is_one_output = isinstance(self.returned, Tensor)
        self.outputs = _tensors(name, "the results of the function", self.returned)
        if strict:
            self._check_dependence()

    def _check_dependence(self) -> None:
        for i, y in enumerate(self.outputs):
            if not y.requires_grad:
                raise GraphError(f"{self.name}: output {i} does not depend on the inputs, which `strict` forbids")
            found = grad(y, self.inputs, y.detach(), retain_graph=True, allow_unused=True)
            if None in [None if g is None else True for g in found]:
                raise GraphError(f"{self.name}: output {i} does not depend on an input, which `strict` forbids")

    def results(self) -> Any:
        return _alike(self.kept(self.outputs), self.is_one_output)

    def gradient(self) -> Tensors:
        """Return the gradient of the one output, a number, by each input."""
        if len(self.outputs) != 1 or self.outputs[0].numel() != 1:
            raise ShapeError(f"{self.name}: the function must return a tensor with one element")
        return gradients(self.outputs, self.inputs, (self.outputs[0].new_ones(self.outputs[0].shape),), True)


class Pushforward:
    """The product of a Jacobian with vectors of the inputs' shapes: the change of the outputs as the inputs move.

    The gradient Jᵀu that a backward pass with the vector u gives is linear in u. So the gradient of ⟨Jᵀu, v⟩ by u is
    Jv: one recorded backward pass, and one more for each v, whatever the number of outputs. An op whose gradient cannot
    be differentiated takes a backward pass for each element of the outputs instead.
    """

    def __init__(self, outputs: Sequence[Tensor], inputs: Sequence[Tensor]) -> None:
        self.outputs, self.inputs = outputs, inputs
        self._places = [i for i, y in enumerate(outputs) if y.requires_grad]  # the outputs that change
        self._rows: list[Tensors] = []
        ys = [outputs[i] for i in self._places]
        self._u = [zeros_like(y).requires_grad_() for y in ys]
        try:
            with enable_grad():
                self._transposed = grad(ys, inputs, self._u, create_graph=True, allow_unused=True) if ys else ()
        except UnsupportedError as error:
            if any(y.is_complex() for y in ys):
                raise
            self._rows, self._error = [rows_of(y, inputs) for y in ys], error

    def __call__(self, v: Sequence[Tensor], create_graph: bool = False) -> Tensors:
        """Return the change of each output; zeros for one that does not depend on the inputs.

        The change is recorded if `create_graph`, or if a gradient may flow to `v`.

        Raises: UnsupportedError for `create_graph` and an op whose gradient cannot be differentiated
        """
        changes = [y.new_zeros(y.shape) for y in self.outputs]
        if self._rows:
            if create_graph:
                raise self._error
            found: Sequence[Tensor] = [_product(row, v) for row in self._rows]
        else:
            pairs = [(g, x) for g, x in zip(self._transposed, v, strict=False) if g is not None]
            is_recorded = create_graph or (mode.recording and any(x.requires_grad for x in v))
            found = gradients([g for g, _ in pairs], self._u, [x.to(g.dtype) for g, x in pairs], is_recorded)
        for i, change in zip(self._places, found, strict=True):
            changes[i] = change
        return tuple(changes)


def columns_of(push: Pushforward, create_graph: bool = False) -> list[Tensor]:
    """Return the Jacobian of each output by each input, in turn, of the shapes (*output.shape, *input.shape)."""
    by_input: list[list[Tensor]] = []
    for i, x in enumerate(push.inputs):
        if not x.numel():
            by_input.append([y.new_zeros((*y.shape, *x.shape)) for y in push.outputs])
            continue
        still = [t.new_zeros(t.shape) for t in push.inputs]
        along = eye(x.numel(), dtype=x.dtype, device=x.device).reshape(-1, *x.shape)
        pushed = vmap(
            lambda v, i=i, still=still: push([*still[:i], v, *still[i + 1 :]], create_graph),
            randomness="same",
            chunk_size=_at_once([*push.inputs, *push.outputs]),
        )
        columns = pushed(along)
        by_input.append([column.movedim(0, -1).reshape((*column.shape[1:], *x.shape)) for column in columns])
    return [jacobian for jacobians in zip(*by_input, strict=True) for jacobian in jacobians]


def _product(rows: Tensors, v: Sequence[Tensor]) -> Tensor:
    """Return the product of the Jacobian of one output, by each input, with a vector for each input."""
    shape = rows[0].shape[: rows[0].ndim - v[0].ndim]
    terms = [part.reshape(math.prod(shape), x.numel()) @ x.reshape(-1) for part, x in zip(rows, v, strict=True)]
    return sum(terms[1:], terms[0]).reshape(shape)


def _tensors(name: str, what: str, x: Any) -> Tensors:
    parts = x if isinstance(x, tuple | list) else (x,)
    for part in parts:
        if not isinstance(part, Tensor):
            raise ArgumentTypeError(f"{name}: {what} must be tensors, not {type(part).__name__}")
    return tuple(parts)


def _vectors(name: str, v: Any, like: Tensors) -> Tensors:
    if v is None:
        if len(like) != 1 or like[0].numel() != 1:
            raise ArgumentError(f"{name}: v may be left out only for one element", hint="pass v of the same shape")
        return (like[0].new_ones(like[0].shape),)
    vectors = _tensors(name, "v", v)
    if [x.shape for x in vectors] != [x.shape for x in like]:
        shapes = " and ".join(str([tuple(x.shape) for x in part]) for part in (vectors, like))
        raise ShapeError(f"{name}: v does not fit: shapes {shapes}")
    return vectors


def _alike(parts: tuple[Any, ...], is_one: bool) -> Any:
    return parts[0] if is_one else parts


__getattr__, __dir__ = names_of(__name__)
