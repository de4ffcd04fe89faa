"""Pruning as torch.nn.utils.prune: masks on parameters that a hook multiplies before each forward.

A pruned `weight` is computed from the parameter `weight_orig` and the buffer `weight_mask`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from tallow.core.apply import apply
from tallow.core.creation import zeros
from tallow.core.tensor import Tensor
from tallow.errors import ArgumentError, ArgumentTypeError
from tallow.functions.like import ones_like
from tallow.functions.sampling import rand_like
from tallow.lazy_names import names_of
from tallow.nn.module import Module
from tallow.ops.dims import normalize_dim
from tallow.ops.joining import cat
from tallow.ops.norm import linalg_vector_norm

__all__ = [
    "BasePruningMethod",
    "CustomFromMask",
    "Identity",
    "L1Unstructured",
    "LnStructured",
    "PruningContainer",
    "RandomStructured",
    "RandomUnstructured",
    "custom_from_mask",
    "global_unstructured",
    "identity",
    "is_pruned",
    "l1_unstructured",
    "ln_structured",
    "random_structured",
    "random_unstructured",
    "remove",
]


class BasePruningMethod:
    """A way to prune a parameter, and the hook that multiplies it by its mask before each forward.

    A subclass says what it prunes by `PRUNING_TYPE` ("unstructured", "structured", "global"), and computes the mask.
    """

    PRUNING_TYPE = "unstructured"
    _tensor_name: str

    def __call__(self, module: Any, inputs: Any = None) -> None:
        """Compute the pruned parameter of a module."""
        object.__setattr__(module, self._tensor_name, self.apply_mask(module))

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """Return a mask of the shape of `t`, the scores, with no more ones than `default_mask`."""
        raise NotImplementedError(f"{type(self).__name__} defines no compute_mask")

    def apply_mask(self, module: Any) -> Tensor:
        """Return the product of the parameter and its mask."""
        return getattr(module, f"{self._tensor_name}_orig") * getattr(module, f"{self._tensor_name}_mask")

    def prune(self, t: Tensor, default_mask: Tensor | None = None, importance_scores: Tensor | None = None) -> Tensor:
        """Return the product of a tensor and its mask, without a module."""
        return t * self.compute_mask(
            _scores(t, importance_scores), ones_like(t) if default_mask is None else default_mask
        )

    @classmethod
    def apply(
        cls, module: Module, name: str, *args: Any, importance_scores: Tensor | None = None, **kwargs: Any
    ) -> BasePruningMethod:
        """Prune a parameter of a module, on top of the mask it may have. Return the hook.

        Args:    args, kwargs: those of the class; importance_scores: what to prune by, in place of the values
        """
        method: BasePruningMethod = cls(*args, **kwargs)
        method._tensor_name = name
        key = _hooks(module).get(name)
        if key is None and module._parameters.get(name) is None:
            raise ArgumentError(f"prune: {type(module).__name__} has no parameter {name!r}")
        scores = _scores(getattr(module, name), importance_scores)
        mask = ones_like(scores) if key is None else getattr(module, f"{name}_mask")
        if key is None:
            mask = method.compute_mask(scores, mask)
            original = module._parameters[name]
            delattr(module, name)
            module.register_parameter(f"{name}_orig", original)
        else:
            earlier: Any = module._forward_pre_hooks[key]
            container = PruningContainer(earlier)
            container.add_pruning_method(method)
            method, mask = container, container.compute_mask(scores, mask)
            del module._forward_pre_hooks[key]  # now that the mask is valid
        module.register_buffer(f"{name}_mask", mask.to(getattr(module, f"{name}_orig").dtype))
        method(module)
        module.register_forward_pre_hook(method)
        return method

    def remove(self, module: Any) -> None:
        """Let the parameter hold the pruned values, without mask."""
        name = self._tensor_name
        original = getattr(module, f"{name}_orig")
        original.data = self.apply_mask(module).detach()
        for place in (name, f"{name}_orig", f"{name}_mask"):
            delattr(module, place)
        module.register_parameter(name, original)


class PruningContainer(BasePruningMethod):
    """Several methods that prune the same parameter, one after the other."""

    def __init__(self, *args: BasePruningMethod) -> None:
        self._pruning_methods: list[BasePruningMethod] = []
        self._tensor_name = args[0]._tensor_name if args else ""
        for method in args:
            self.add_pruning_method(method)

    def add_pruning_method(self, method: BasePruningMethod) -> None:
        """Add a method for the same parameter."""
        if method._tensor_name != self._tensor_name:
            raise ArgumentError(f"PruningContainer: it prunes {self._tensor_name!r}, not {method._tensor_name!r}")
        self._pruning_methods += getattr(method, "_pruning_methods", [method])

    def __len__(self) -> int:
        return len(self._pruning_methods)

    def __iter__(self) -> Iterator[BasePruningMethod]:
        return iter(self._pruning_methods)

    def __getitem__(self, idx: int) -> BasePruningMethod:
        return self._pruning_methods[idx]

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """Return the mask of the last method, which chooses among what the others keep."""
        method, mask = self._pruning_methods[-1], default_mask.clone()
        kept: Any = ...
        if method.PRUNING_TYPE == "unstructured":
            kept = mask != 0
        elif isinstance(method, _Structured):
            dim = normalize_dim(method.dim, t.ndim, "prune")
            kept = (*[slice(None)] * dim, mask.movedim(dim, 0).flatten(1).sum(1) != 0)
        mask[kept] = method.compute_mask(t[kept], mask[kept])
        return mask


class Identity(BasePruningMethod):
    """Prune nothing."""

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """Return `default_mask`."""
        return default_mask


class CustomFromMask(BasePruningMethod):
    """Prune by a mask."""

    PRUNING_TYPE = "global"

    def __init__(self, mask: Tensor) -> None:
        self.mask = mask

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """Return the product of the masks."""
        return default_mask * self.mask.to(default_mask.dtype)


class L1Unstructured(BasePruningMethod):
    """Prune the elements with the smallest absolute values.

    Args:    amount: a number of elements, or a float between 0 and 1 for a part of them
    """

    def __init__(self, amount: float) -> None:
        self.amount = amount

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """Return a mask that prunes `amount` of the elements of `t`."""
        return default_mask * _lowest(t.abs(), _count(self.amount, t.numel()))


class RandomUnstructured(L1Unstructured):
    """Prune random elements.

    Args:    amount: a number of elements, or a float between 0 and 1 for a part of them
    """

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """Return a mask that prunes `amount` of the elements of `t`."""
        return super().compute_mask(rand_like(t), default_mask)


class _Structured(BasePruningMethod):
    """Prune the slices along `dim` with the lowest scores."""

    PRUNING_TYPE = "structured"
    amount: float
    dim: int

    def _slice_scores(self, t: Tensor, dim: int) -> Tensor:
        raise NotImplementedError

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """Return a mask that prunes `amount` of the slices of `t`.

        Raises:  ArgumentError unless `t` has two dims or more, DimensionError for a dim that it lacks
        """
        if t.ndim < 2:
            raise ArgumentError(
                "Structured pruning can only be applied to multidimensional tensors. Found tensor of shape "
                f"{tuple(t.shape)} with {t.ndim} dims"
            )
        dim = normalize_dim(self.dim, t.ndim, "prune")
        kept = _lowest(self._slice_scores(t, dim), _count(self.amount, t.shape[dim]))
        return default_mask * kept.reshape([-1 if i == dim else 1 for i in range(t.ndim)])


class LnStructured(_Structured):
    """Prune the slices along `dim` with the smallest n-norms.

    Args:    amount: a number of slices, or a float between 0 and 1 for a part of them
    """

    def __init__(self, amount: float, n: Any, dim: int = -1) -> None:
        self.amount, self.n, self.dim = amount, n, dim

    def _slice_scores(self, t: Tensor, dim: int) -> Tensor:
        order = 2.0 if self.n == "fro" else float(self.n)
        norms: Tensor = apply(linalg_vector_norm, t, order, [i for i in range(t.ndim) if i != dim])
        return norms


class RandomStructured(_Structured):
    """Prune random slices along `dim`.

    Args:    amount: a number of slices, or a float between 0 and 1 for a part of them
    """

    def __init__(self, amount: float, dim: int = -1) -> None:
        self.amount, self.dim = amount, dim

    def _slice_scores(self, t: Tensor, dim: int) -> Tensor:
        return rand_like(zeros(t.shape[dim], device=t.device))


def _hooks(module: Any) -> dict[str, int]:
    """Return for each pruned parameter of a module the key of its hook."""
    hooks = module._forward_pre_hooks.items()
    return {hook._tensor_name: key for key, hook in hooks if isinstance(hook, BasePruningMethod)}


def _count(amount: float, size: int) -> int:
    """Return how many of `size` elements to prune.

    Args:    amount: a number of elements, or a float between 0 and 1 for a part of them
    """
    if isinstance(amount, bool) or not isinstance(amount, int | float) or amount < 0:
        raise ArgumentError(f"prune: amount={amount!r}", hint="pass an int >= 0, or a float between 0 and 1")
    if isinstance(amount, float) and amount > 1:
        raise ArgumentError(f"prune: amount={amount} is a float above 1", hint="pass an int for a number of elements")
    count = amount if isinstance(amount, int) else round(amount * size)
    if count > size:
        raise ArgumentError(f"prune: amount={amount} is more than the {size} elements to prune")
    return count


def _lowest(scores: Tensor, count: int) -> Tensor:
    """Return a mask of the scores' shape with zeros at the lowest `count`."""
    mask = ones_like(scores)
    if count:
        mask.view(-1)[scores.reshape(-1).topk(count, largest=False).indices] = 0
    return mask


def _scores(t: Tensor, importance_scores: Tensor | None) -> Tensor:
    if importance_scores is None:
        return t.detach()
    if importance_scores.shape != t.shape:
        raise ArgumentError(
            f"prune: importance_scores of shape {tuple(importance_scores.shape)} for {tuple(t.shape)} elements"
        )
    return importance_scores.detach()


def identity(module: Module, name: str) -> Any:
    """Add a mask of ones."""
    Identity.apply(module, name)
    return module


def custom_from_mask(module: Module, name: str, mask: Tensor) -> Any:
    """Multiply a parameter by a mask of its shape."""
    CustomFromMask.apply(module, name, mask)
    return module


def l1_unstructured(module: Module, name: str, amount: float, importance_scores: Tensor | None = None) -> Any:
    """Drop the `amount` of elements with the smallest absolute values, or scores. Returns the module."""
    L1Unstructured.apply(module, name, amount, importance_scores=importance_scores)
    return module


def random_unstructured(module: Module, name: str, amount: float) -> Any:
    """Drop a random `amount` of elements. Returns the module."""
    RandomUnstructured.apply(module, name, amount)
    return module


def ln_structured(
    module: Module, name: str, amount: float, n: Any, dim: int, importance_scores: Tensor | None = None
) -> Any:
    """Drop the slices along `dim` with the smallest n-norms. Returns the module."""
    LnStructured.apply(module, name, amount, n, dim, importance_scores=importance_scores)
    return module


def random_structured(module: Module, name: str, amount: float, dim: int) -> Any:
    """Drop random slices along `dim`. Returns the module."""
    RandomStructured.apply(module, name, amount, dim)
    return module


def global_unstructured(
    parameters: Iterable[tuple[Module, str]],
    pruning_method: type[BasePruningMethod],
    importance_scores: dict[tuple[Module, str], Tensor] | None = None,
    **kwargs: Any,
) -> None:
    """Drop an `amount` of the elements of all parameters together: some parameters may lose more than others.

    Args:
        parameters: pairs of a module and the name of its parameter.
        pruning_method: a class whose PRUNING_TYPE is "unstructured".
        kwargs: amount, as for the other functions.
    """
    unstructured = isinstance(pruning_method, type) and issubclass(pruning_method, BasePruningMethod)
    if not unstructured or pruning_method.PRUNING_TYPE != "unstructured":
        raise ArgumentTypeError(f"global_unstructured: pruning_method={pruning_method!r}", hint="use L1Unstructured")
    pairs, given = list(parameters), importance_scores or {}
    scores = [_scores(getattr(module, name), given.get((module, name))) for module, name in pairs]
    masks = [
        getattr(m, f"{name}_mask") if name in _hooks(m) else ones_like(s)
        for (m, name), s in zip(pairs, scores, strict=True)
    ]
    method = pruning_method(**kwargs)
    method._tensor_name = "all"
    container = PruningContainer(method)
    flat, mask = (apply(cat, [part.reshape(-1) for part in parts], 0) for parts in (scores, masks))
    parts = container.compute_mask(flat, mask).split([s.numel() for s in scores])
    for (module, name), part in zip(pairs, parts, strict=True):
        custom_from_mask(module, name, part.view(getattr(module, name).shape))


def remove(module: Module, name: str) -> Any:
    """Make pruning permanent: the parameter holds the pruned values, without mask and hook."""
    key = _hooks(module).get(name)
    if key is None:
        raise ArgumentError(f"prune.remove: {name!r} of {type(module).__name__} is not pruned")
    method: Any = module._forward_pre_hooks.pop(key)
    method.remove(module)
    return module


def is_pruned(module: Module) -> bool:
    """Return whether a parameter of the module or of a module in it is pruned."""
    return any(_hooks(child) for child in module.modules())


__getattr__, __dir__ = names_of(__name__)
