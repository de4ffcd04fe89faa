"""The rules for the kinds of ops: how a batch is computed by the same op, or by others, on tensors with a batch dim.

A rule returns tensors whose first dim is the batch dim.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tallow import dtypes
from tallow.core.apply import apply
from tallow.core.tensor import Tensor
from tallow.core.trees import map_leaves
from tallow.functions.batching.tensors import Batched, aligned, repeated
from tallow.ops.dims import as_ints, normalize_dim
from tallow.ops.table import Op

if TYPE_CHECKING:
    from tallow.functions.batching.level import Level

Rule = Callable[["Call"], Any]
RULES: dict[str, Rule] = {}  # by the kind, or by the name of an op with a rule of its own
PROMOTING = ("promote", "float", "divide", "first")
NO_DIMS = frozenset(("all", "any", "flip"))  # for these an empty tuple means none, not all dims
DIMS = frozenset(("dim", "dims", "dim0", "dim1", "dim2", "start_dim", "end_dim", "dimension"))


class Call:
    """A call of an op with batched arguments.

    Attributes:
        args: the arguments by position, those that were not given with their default.
        kwargs: the keyword-only ones.
    """

    def __init__(self, op: Op, level: Level, args: list[Any], kwargs: dict[str, Any]) -> None:
        self.op, self.level, self.kwargs = op, level, kwargs
        self.args = [*args, *op.defaults[len(args) :]]

    def __getitem__(self, name: str) -> Any:
        """Return an argument by its name."""
        if name in self.op.names:
            return self.args[self.op.names.index(name)]
        return self.kwargs.get(name, self.op.all_defaults[name])

    def is_batched(self, x: Any) -> bool:
        """Return whether an argument is a batch of this level."""
        return isinstance(x, Batched) and x.level is self.level

    def value(self, x: Any) -> Any:
        """Return the tensor with the batch dim for a batch of this level; other arguments as they are."""
        return x.value if self.is_batched(x) else x

    def full(self, x: Tensor) -> Tensor:
        """Return a tensor with the batch dim; one without a batch is repeated."""
        return x.value if isinstance(x, Batched) and x.level is self.level else repeated(x, self.level.size)

    def run(self, *args: Any, **kwargs: Any) -> Any:
        """Apply the op to other arguments, with the same keywords."""
        return apply(self.op, *args, **(self.kwargs | kwargs))

    def compose(self, function: Callable[[], Tensor]) -> Tensor:
        """Return what a function of the batched tensors themselves, by other ops, computes."""
        return self.full(function())

    @property
    def first_is_alone(self) -> bool:
        """Return whether only the first operand is a batch."""
        return self.is_batched(self.args[0]) and not any(
            self.is_batched(x) for x in (*self.args[1:], *self.kwargs.values())
        )


def rule(*names: str) -> Callable[[Rule], Rule]:
    """File the decorated function as the rule of these kinds or ops."""

    def file(function: Rule) -> Rule:
        RULES.update(dict.fromkeys(names, function))
        return function

    return file


@rule("itself")
def _by_name(call: Call) -> Any:
    return RULES[call.op.name](call)


@rule("adjoint_map", "linear_map", "product_map", "with_value")
def _for_each(call: Call) -> Any:
    """Call the op for each element: its functions of arrays may depend on the shape."""
    results = call.level.by_elements(lambda *args: apply(call.op, *args), tuple(call.args), {}, None)
    return call.full(results)


@rule("elementwise")
def elementwise(call: Call) -> Any:
    """Put new dims after the batch dim where an operand has fewer dims than others, as broadcasting does before it."""
    places = {*(i for i, _ in call.op.operands), *call.op.indices}
    args = list(call.args)
    tensors = [args[i] for i in sorted(places) if isinstance(args[i], Tensor)]
    rank = max(x.ndim for x in tensors)
    if call.op.dtypes in PROMOTING and len({x.dtype for x in tensors}) > 1:
        # A tensor without dims promotes less, but the batch dim is one.
        operands = [args[i] for i, _ in call.op.operands]
        common = dtypes.result_type(x.array if isinstance(x, Tensor) else x for x in operands)
        if call.op.dtypes != "first":
            for i, _ in call.op.operands:
                args[i] = args[i].to(common) if isinstance(args[i], Tensor) else args[i]
    for i in places:
        args[i] = aligned(call.level, args[i], rank) if isinstance(args[i], Tensor) else args[i]
    return call.run(*args)


@rule("silu_mul", "gelu_mul")
def alike(call: Call) -> Any:
    """Give all operands the batch dim, for an op that does not broadcast."""
    return call.run(*map(call.full, call.args))


@rule("clone")
def _clone(call: Call) -> Any:
    """Leave the memory format out, which is for tensors of as many dims as one element has."""
    return apply(call.op, call.args[0].value)


@rule("dim")
def along_dims(call: Call) -> Any:
    """Shift the dims by one; let the op work on all but the batch dim where it would work on all."""
    if any(isinstance(x, Tensor) for x in call.args[1:]):
        return _along_dims_of_several(call)
    x, args = call.args[0], list(call.args)
    value, rank = x.value, x.ndim
    if not rank and call.op.name != "unsqueeze":  # all dims of a tensor without dims are its one element
        value, rank = value.unsqueeze(1), 1
    flat = False
    kwargs = {}
    for name in DIMS & call.op.all_defaults.keys():
        dims = _shifted(call, name, call[name], rank)
        if dims is None:  # one dim only, and None: of the flattened tensor
            flat, dims = True, 1
        if name in call.op.names:
            args[call.op.names.index(name)] = dims
        else:
            kwargs[name] = dims
    if flat:
        value = value.flatten(1)
    args[0] = value
    result = call.run(*args, **kwargs)
    if x.ndim and not (flat and "keepdim" in call.op.all_defaults and call["keepdim"]):
        return result
    if x.ndim:
        return map_leaves(lambda y: y.reshape(call.level.size, *[1] * x.ndim), result)
    if call.op.name == "unsqueeze":
        return result
    return map_leaves(lambda y: y.reshape(call.level.size, *y.shape[2:]), result)


def _along_dims_of_several(call: Call) -> Any:
    """As `along_dims`, for an op whose operands are alike: of the same dims, or None."""
    tensors = [x for x in call.args if isinstance(x, Tensor)]
    rank = tensors[0].ndim
    if not rank or not isinstance(call["dim"], int) or any(x.ndim != rank for x in tensors):
        return NotImplemented
    args = [call.full(x) if isinstance(x, Tensor) else x for x in call.args]
    dim = normalize_dim(call["dim"], rank, call.op.name) - rank
    if "dim" in call.op.names:
        args[call.op.names.index("dim")] = dim
        return call.run(*args)
    return call.run(*args, dim=dim)


def _shifted(call: Call, name: str, dims: Any, rank: int) -> Any:
    """Return dims, of a tensor with `rank` dims, as those of the tensor with the batch dim."""
    own = call.op.name
    if dims is None or (isinstance(dims, tuple | list) and not dims and own not in NO_DIMS):
        parameter = next(p for p in call.op.parameters if p.name == name)
        return tuple(range(1, rank + 1)) if "Dims" in str(parameter.annotation) else None
    count = rank + 1 if own in ("unsqueeze", "diag_embed") else rank
    if isinstance(dims, tuple | list):
        return tuple([normalize_dim(d, count, own) + 1 for d in as_ints(dims, own)])
    return normalize_dim(dims, count, own) + 1


@rule("leading")
def leading(call: Call) -> Any:
    """Use the batch dim as one more of the leading dims, where only the first operand is a batch."""
    if not call.first_is_alone:
        return NotImplemented
    return call.run(call.args[0].value, *call.args[1:])


@rule("samples")
def samples(call: Call) -> Any:
    """Use the batch dim as that of samples, or join the two, where only the first operand is a batch.

    The ops say by `dims` how many dims follow the channels.
    """
    if not call.first_is_alone:
        return NotImplemented
    x, spatial = call.args[0].value, call["dims"]
    return of_samples(x, x.ndim - spatial - 1, lambda y: call.run(y, *call.args[1:]))


def of_samples(x: Tensor, count: int, function: Callable[[Tensor], Any]) -> Any:
    """Return function(x), which takes one dim of samples, for an x whose first `count` dims are."""
    if count < 2:
        return function(x)
    result = function(x.flatten(0, count - 1))
    return map_leaves(lambda y: y.unflatten(0, tuple(x.shape[:count])), result)
