"""torch.func: gradients, Jacobians and batches as functions of functions.

Gradients can be differentiated again, if all ops in the function have a rule, see tallow.ops.second_order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from typing import Any

from tallow.autograd.function import Function
from tallow.autograd.functional import Pushforward, Run, columns_of, gradients, rows_of
from tallow.core.apply import apply
from tallow.core.tensor import Tensor
from tallow.core.trees import filled, leaves, map_leaves
from tallow.errors import ArgumentError, ArgumentTypeError, GraphError, ShapeError, UnsupportedError
from tallow.functions.batching.vmap import vmap
from tallow.lazy_names import names_of
from tallow.nn.channel_normalization import _BatchNorm
from tallow.nn.hooks import STRUCTURE
from tallow.nn.module import Module
from tallow.ops.joining import stack
from tallow.tape.graph import leaves_of
from tallow.tape.modes import enable_grad, mode

__all__ = [
    "functional_call",
    "functionalize",
    "grad",
    "grad_and_value",
    "hessian",
    "jacfwd",
    "jacrev",
    "jvp",
    "linearize",
    "replace_all_batch_norm_modules_",
    "stack_module_state",
    "vjp",
    "vmap",
]

Argnums = int | tuple[int, ...]


# ----------------------------------------------------------------------------------------------------------- gradients


class _Undifferentiable(Function):
    """Tensors that depend on others in a way that has no gradient here: backward raises `error` in place of zeros."""

    @staticmethod
    def forward(ctx: Any, error: UnsupportedError, count: int, *tensors: Tensor) -> tuple[Tensor, ...]:
        ctx.error = error
        return tuple(t.clone() for t in tensors[:count])

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        raise ctx.error


class _Run(Run):
    """A call of a function whose gradients by some arguments are wanted. It is recorded if it depends on outer tensors.

    Attributes:
        inputs: the tensors in those arguments, in order.
        tree: the results as they are nested; what else the function has returned is `aux`.
        outer: the leaves of the outer graph that the results depend on; none where ops are not recorded.
    """

    def __init__(self, name: str, function: Any, chosen: Sequence[Any], call: Any, has_aux: bool) -> None:
        self.chosen = chosen
        originals = leaves(list(chosen))
        if not originals or not all(isinstance(x, Tensor) and x.dtype.category > 1 for x in originals):
            raise ArgumentTypeError(
                f"{name}: differentiates by floating and complex tensors, and tuples, lists and dicts of them"
            )
        if mode.batching is not None:
            originals = [mode.batching.expanded(x) for x in originals]
        super().__init__(name, lambda inputs: call(function, filled(list(chosen), list(inputs))), originals)
        self.tree, self.aux = self.returned, None
        if has_aux:
            if not isinstance(self.tree, tuple) or len(self.tree) != 2:
                raise ArgumentTypeError(f"{name}: with has_aux the function returns a pair: (results, others)")
            self.tree, self.aux = self.tree
            self.aux = map_leaves(lambda x: x.detach() if isinstance(x, Tensor) else x, self.aux)
        self.outputs = tuple(leaves(self.tree))
        if not all(isinstance(y, Tensor) for y in self.outputs):
            raise ArgumentTypeError(f"{name}: the function must return tensors")
        own = {id(x.physical()) for x in self.inputs}
        self.outer: list[Tensor] = leaves_of([y.physical() for y in self.outputs], own)[1] if mode.recording else []
        self.is_recorded = bool(self.outer)

    def result(self) -> Any:
        """Return the results, as parts of the outer graph if they depend on it."""
        return filled(self.tree, list(self.kept(self.outputs)))

    def linked(self, derivatives: Callable[[bool], Sequence[Tensor]]) -> list[Tensor]:
        """Return derivatives, as parts of the outer graph if they depend on it.

        If an op's gradient cannot be differentiated, the gradient of what is returned raises an error.

        Args:    derivatives: computes them, with a graph or without
        """
        if not self.is_recorded:
            return list(derivatives(False))
        with enable_grad():
            try:
                return list(derivatives(True))
            except UnsupportedError as error:
                tensors = derivatives(False)
                return list(_Undifferentiable.apply(error, len(tensors), *tensors, *self.outer))

    def gradients(self, seeds: Sequence[Tensor]) -> Any:
        """Return the product of seeds with the Jacobian, as the chosen arguments are nested."""
        found = self.linked(lambda create_graph: gradients(self.outputs, self.inputs, seeds, create_graph))
        return filled(list(self.chosen), found)

    def jacobian(self, output: Tensor, chunk_size: int | None = None) -> list[Tensor]:
        return self.linked(lambda create_graph: rows_of(output, self.inputs, create_graph, chunk_size))


def _check_real(name: str, what: str, values: Sequence[Any], hint: str) -> None:
    if any(isinstance(x, Tensor) and x.is_complex() for x in leaves(list(values))):
        raise UnsupportedError(f"{name}: Expected all {what} to be real", hint=hint)


def _by_argument(argnums: Argnums, args: tuple[Any, ...], kwargs: dict[str, Any], name: str) -> tuple[list[Any], Any]:
    """Return the arguments with these numbers, and a function that calls another with replacements."""
    numbers = (argnums,) if isinstance(argnums, int) else argnums
    if not all(-len(args) <= n < len(args) for n in numbers):
        raise ArgumentError(f"{name}: argnums {argnums} of {len(args)} positional arguments")

    def call(function: Callable[..., Any], replaced: list[Any]) -> Any:
        all_ = list(args)
        for n, value in zip(numbers, replaced, strict=True):
            all_[n] = value
        return function(*all_, **kwargs)

    return [args[n] for n in numbers], call


def grad_and_value(func: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False) -> Callable[..., Any]:
    """Return a function that returns the gradient of `func` and its value.

    Args:
        func: returns a tensor without dims, or with `has_aux` a pair of it and anything else.
        argnums: which arguments to differentiate by. They may be tuples, lists or dicts of tensors.
        has_aux: the function returned gives (gradients, (value, aux)).

    Example:
        >>> import tallow as tl
        >>> tl.func.grad_and_value(lambda x: (x**2).sum())(tl.tensor([1.0, 2.0]))
        (tensor([2., 4.]), tensor(5.))
    """

    @wraps(func)
    def run(*args: Any, **kwargs: Any) -> Any:
        chosen, call = _by_argument(argnums, args, kwargs, "grad")
        made = _Run("grad", func, chosen, call, has_aux)
        if not isinstance(made.tree, Tensor) or made.tree.ndim or not made.tree.is_floating_point():
            got = f"one of shape {tuple(made.tree.shape)}" if isinstance(made.tree, Tensor) else "several"
            raise ShapeError(f"grad: the function must return a floating tensor without dims, not {got}")
        parts = made.gradients([made.tree.new_ones(())])
        gradient = parts[0] if isinstance(argnums, int) else tuple(parts)
        return gradient, (made.result(), made.aux) if has_aux else made.result()

    return run


def grad(func: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False) -> Callable[..., Any]:
    """Return a function that returns the gradient of `func`, and with `has_aux` also what else `func` returns.

    Args: as `grad_and_value`.

    Example:
        >>> import tallow as tl
        >>> tl.func.grad(tl.sin)(tl.tensor(0.0))
        tensor(1.)
    """
    both = grad_and_value(func, argnums, has_aux)

    @wraps(func)
    def run(*args: Any, **kwargs: Any) -> Any:
        gradient, value = both(*args, **kwargs)
        return (gradient, value[1]) if has_aux else gradient

    return run


def vjp(func: Callable[..., Any], *primals: Any, has_aux: bool = False) -> tuple[Any, ...]:
    """Return func(*primals), and a function of a vector for the results to its product with the Jacobian.

    The product is a tuple with a part for each of the primals. With `has_aux`, what else `func` returns comes third.
    """
    made = _Run("vjp", func, primals, lambda function, replaced: function(*replaced), has_aux)

    def product(cotangents: Any, retain_graph: bool = True) -> tuple[Any, ...]:
        seeds = leaves(cotangents)
        if [getattr(s, "shape", None) for s in seeds] != [y.shape for y in made.outputs]:
            raise ShapeError("vjp: the vector must have the shapes of the results")
        return tuple(made.gradients(seeds))

    return (made.result(), product, made.aux) if has_aux else (made.result(), product)


def jvp(
    func: Callable[..., Any], primals: Any, tangents: Any, *, strict: bool = False, has_aux: bool = False
) -> tuple[Any, ...]:
    """Return func(*primals), and the change of the results as the primals move by the tangents.

    Args:
        strict: raise GraphError for a result that does not depend on the primals, in place of zeros.
    """
    made, change = _linear("jvp", func, primals, has_aux)
    if strict and not all(y.requires_grad for y in made.outputs):
        raise GraphError("jvp: a result does not depend on the primals, which `strict` forbids")
    moved = change(*tangents)
    return (made.result(), moved, made.aux) if has_aux else (made.result(), moved)


def linearize(func: Callable[..., Any], *primals: Any) -> tuple[Any, Callable[..., Any]]:
    """Return func(*primals), and a function of tangents to the change of the results, as `jvp` gives it.

    Example:
        >>> import tallow as tl
        >>> value, change = tl.func.linearize(tl.exp, tl.tensor(0.0))
        >>> value, change(tl.tensor(2.0))
        (tensor(1.), tensor(2.))
    """
    made, change = _linear("linearize", func, primals, False)
    return made.result(), change


def _linear(name: str, func: Callable[..., Any], primals: Any, has_aux: bool) -> tuple[_Run, Callable[..., Any]]:
    """Return the run of a function, and a function of tangents to the change of its results."""
    made = _Run(name, func, primals, lambda function, replaced: function(*replaced), has_aux)
    push = Pushforward(made.outputs, made.inputs)

    def change(*tangents: Any) -> Any:
        vectors = leaves(list(tangents))
        if [getattr(v, "shape", None) for v in vectors] != [x.shape for x in made.inputs]:
            raise ShapeError(f"{name}: the tangents must have the shapes of the primals")
        return filled(made.tree, made.linked(lambda create_graph: push(vectors, create_graph)))

    return made, change


def jacrev(
    func: Callable[..., Any], argnums: Argnums = 0, *, has_aux: bool = False, chunk_size: int | None = None
) -> Callable[..., Any]:
    """Return a function that returns the derivatives of each element of the results by each element of an argument.

    A pass takes the elements all at once, if the ops have rules of the second order.

    Shapes:  result (A...), argument (B...) -> (A..., B...), nested as the results, and each as the arguments

    Args:
        argnums, has_aux: as `grad`.
        chunk_size: the number of rows to compute at once, to use less memory; by default it depends on their size.

    Raises: ArgumentError for a `chunk_size` below 1
    """
    if chunk_size is not None and chunk_size < 1:
        raise ArgumentError(f"jacrev: chunk_size={chunk_size}; expected a positive number, or None")

    @wraps(func)
    def run(*args: Any, **kwargs: Any) -> Any:
        chosen, call = _by_argument(argnums, args, kwargs, "jacrev")
        _check_real("jacrev", "inputs", chosen, "take view_as_real(x) as the argument")
        made = _Run("jacrev", func, chosen, call, has_aux)
        _check_real("jacrev", "outputs", made.outputs, "return view_as_real(y), or use jacfwd")

        def of(output: Tensor) -> Any:
            parts = filled(chosen, made.jacobian(output, chunk_size))
            return parts[0] if isinstance(argnums, int) else tuple(parts)

        jacobian = map_leaves(of, made.tree)
        return (jacobian, made.aux) if has_aux else jacobian

    return run


def jacfwd(
    func: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False, *, randomness: str = "error"
) -> Callable[..., Any]:
    """As `jacrev`, by a pass for each element of the argument: quicker where the results have more elements.

    Args:
        argnums, has_aux: as `grad`.
        randomness: has no effect: the function is called once.
    """

    @wraps(func)
    def run(*args: Any, **kwargs: Any) -> Any:
        chosen, call = _by_argument(argnums, args, kwargs, "jacfwd")
        _check_real("jacfwd", "inputs", chosen, "take view_as_real(x) as the argument")
        made = _Run("jacfwd", func, chosen, call, has_aux)
        push = Pushforward(made.outputs, made.inputs)
        parts = iter(made.linked(lambda create_graph: columns_of(push, create_graph)))

        def of(_: Tensor) -> Any:
            nested = filled(chosen, [next(parts) for _ in made.inputs])
            return nested[0] if isinstance(argnums, int) else tuple(nested)

        jacobian = map_leaves(of, made.tree)
        return (jacobian, made.aux) if has_aux else jacobian

    return run


def hessian(func: Callable[..., Any], argnums: Argnums = 0) -> Callable[..., Any]:
    """Return a function that returns the second derivatives of `func`: the Jacobian of its Jacobian.

    Example:
        >>> import tallow as tl
        >>> tl.func.hessian(lambda x: (x**3).sum())(tl.tensor([1.0, 2.0]))
        tensor([[ 6.,  0.],
                [ 0., 12.]])
    """
    return jacrev(jacrev(func, argnums), argnums)


def functionalize(func: Callable[..., Any], *, remove: str = "mutations") -> Callable[..., Any]:
    """Return a function with the results and the effects of `func`.

    In PyTorch it makes traces free of in-place ops; the graphs of `tl.export` always are.

    Args:
        remove: "mutations", or "mutations_and_views".
    """
    if remove not in ("mutations", "mutations_and_views"):
        raise ArgumentError(f"functionalize: remove={remove!r}", hint="use 'mutations' or 'mutations_and_views'")

    @wraps(func)
    def run(*args: Any, **kwargs: Any) -> Any:
        return func(*args, **kwargs)

    return run


# ------------------------------------------------------------------------------------------------------------- modules


def functional_call(
    module: Module, parameter_and_buffer_dicts: Any, args: Any = None, kwargs: dict[str, Any] | None = None, *,
    tie_weights: bool = True, strict: bool = False,
) -> Any:  # fmt: skip
    """Call a module with other parameters and buffers; those that are not given are its own.

    Args:
        parameter_and_buffer_dicts: tensors by their names in the module, or a sequence of such dicts.
        args: a tuple, or the only argument.
        tie_weights: a tensor stands also for the other names of the parameter that it replaces.
        strict: raise if a name is missing, or is none of the module's.

    Example:
        >>> import tallow as tl
        >>> layer = tl.nn.Linear(2, 1, bias=False)
        >>> tl.func.functional_call(layer, {"weight": tl.ones(1, 2)}, tl.ones(2))
        tensor([2.])
    """
    dicts = parameter_and_buffer_dicts
    given = dict(dicts) if isinstance(dicts, dict) else {name: t for each in dicts for name, t in each.items()}
    args = () if args is None else args if isinstance(args, tuple) else (args,)
    with replaced(module, given, tie_weights, strict):
        return module(*args, **(kwargs or {}))


@contextmanager
def replaced(module: Module, given: dict[str, Tensor], tie_weights: bool, strict: bool) -> Iterator[None]:
    """Replace tensors of a module for a while."""
    places: dict[str, tuple[dict[str, Any], str]] = {}
    for prefix, owner in module.named_modules(remove_duplicate=False):
        for registry in (owner._parameters, owner._buffers):
            places |= {f"{prefix}.{key}".lstrip("."): (registry, key) for key, t in registry.items() if t is not None}
    before = {name: registry[key] for name, (registry, key) in places.items()}
    chosen = {name: t for name, t in given.items() if name in places}
    if tie_weights:
        by_tensor = {id(before[name]): t for name, t in chosen.items()}
        chosen = {name: by_tensor[id(t)] for name, t in before.items() if id(t) in by_tensor} | chosen
    unknown, missing = sorted(given.keys() - places), sorted(places.keys() - chosen)
    if strict and (unknown or missing):
        raise ArgumentError(f"functional_call: unexpected names {unknown}; missing names {missing}")

    def put(tensors: dict[str, Any]) -> None:
        STRUCTURE.changes += 1
        for name, tensor in tensors.items():
            registry, key = places[name]
            registry[key] = tensor

    put(chosen)
    try:
        yield
    finally:
        put({name: before[name] for name in chosen})


def stack_module_state(models: Sequence[Module]) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Return the parameters and the buffers of modules of one class, each stacked along a new first dim."""
    if not models or any(type(model) is not type(models[0]) for model in models):
        raise ArgumentError("stack_module_state: expected modules of one class, at least one")
    parameters = [dict(model.named_parameters()) for model in models]
    buffers = [dict(model.named_buffers()) for model in models]
    stacked = {
        name: apply(stack, [each[name].detach() for each in parameters]).requires_grad_(p.requires_grad)
        for name, p in parameters[0].items()
    }
    return stacked, {name: apply(stack, [each[name] for each in buffers]) for name in buffers[0]}


def replace_all_batch_norm_modules_(root: Module) -> Module:
    """Let the batch normalization within a module keep no running statistics, so that `vmap` may batch it."""
    for module in root.modules():
        if isinstance(module, _BatchNorm):
            module.running_mean = module.running_var = module.num_batches_tracked = None
            module.track_running_stats = False
    return root


__getattr__, __dir__ = names_of(__name__)
