"""Pruning as torch.nn.utils.prune: masks on parameters that a hook multiplies before each forward.

A pruned `weight` is computed from the parameter `weight_orig` and the buffer `weight_mask`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tallow.core.apply import apply
from tallow.core.creation import zeros
from tallow.core.tensor import Tensor
from tallow.errors import ArgumentError, ArgumentTypeError
from tallow.functions.like import ones_like
from tallow.functions.sampling import rand_like
from tallow.lazy_names import names_of
from tallow.nn.module import Module
from tallow.ops.joining import cat
from tallow.ops.norm import linalg_vector_norm

__all__ = [
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


class _Mask:
    """The hook that computes a pruned parameter."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, module: Any, inputs: Any = None) -> None:
        value = getattr(module, f"{self.name}_orig") * getattr(module, f"{self.name}_mask")
        object.__setattr__(module, self.name, value)


def _hooks(module: Any) -> dict[str, int]:
    """Return for each pruned parameter of a module the key of its hook."""
    return {hook.name: key for key, hook in module._forward_pre_hooks.items() if isinstance(hook, _Mask)}


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


def _slices(t: Tensor, scores: Tensor, amount: float, dim: int) -> Tensor:
    """Return a mask of t's shape that drops the slices along `dim` with the lowest scores."""
    kept = _lowest(scores, _count(amount, t.shape[dim]))
    return kept.reshape([-1 if i == dim % t.ndim else 1 for i in range(t.ndim)]).expand(t.shape).contiguous()


def _scores(t: Tensor, importance_scores: Tensor | None) -> Tensor:
    if importance_scores is None:
        return t.detach()
    if importance_scores.shape != t.shape:
        raise ArgumentError(
            f"prune: importance_scores of shape {tuple(importance_scores.shape)} for {tuple(t.shape)} elements"
        )
    return importance_scores.detach()


def _prune(module: Module, name: str, mask: Tensor) -> Any:
    """Multiply a parameter by a mask, on top of the one it may have."""
    if name in _hooks(module):
        mask = mask * getattr(module, f"{name}_mask")
    else:
        original = module._parameters.get(name)
        if original is None:
            raise ArgumentError(f"prune: {type(module).__name__} has no parameter {name!r}")
        delattr(module, name)
        module.register_parameter(f"{name}_orig", original)
        module.register_forward_pre_hook(_Mask(name))
    module.register_buffer(f"{name}_mask", mask.to(getattr(module, f"{name}_orig").dtype))
    _Mask(name)(module)
    return module


def identity(module: Module, name: str) -> Any:
    """Add a mask of ones."""
    return _prune(module, name, ones_like(getattr(module, name).detach()))


def custom_from_mask(module: Module, name: str, mask: Tensor) -> Any:
    """Multiply a parameter by a mask of its shape."""
    return _prune(module, name, mask)


def l1_unstructured(module: Module, name: str, amount: float, importance_scores: Tensor | None = None) -> Any:
    """Drop the `amount` of elements with the smallest absolute values, or scores. Returns the module."""
    t = getattr(module, name)
    return _prune(module, name, _among_kept(module, name, _scores(t, importance_scores).abs(), amount))


def random_unstructured(module: Module, name: str, amount: float) -> Any:
    """Drop a random `amount` of elements. Returns the module."""
    return _prune(module, name, _among_kept(module, name, rand_like(getattr(module, name).detach()), amount))


def _among_kept(module: Module, name: str, scores: Tensor, amount: float) -> Tensor:
    """Return a mask that drops elements with the lowest scores, of those that are not dropped yet."""
    if name not in _hooks(module):
        return _lowest(scores, _count(amount, scores.numel()))
    kept = getattr(module, f"{name}_mask") != 0
    mask = ones_like(scores)
    mask[kept] = _lowest(scores[kept], _count(amount, int(kept.sum())))
    return mask


def ln_structured(
    module: Module, name: str, amount: float, n: Any, dim: int, importance_scores: Tensor | None = None
) -> Any:
    """Drop the slices along `dim` with the smallest n-norms. Returns the module."""
    t = getattr(module, name)
    dims = [i for i in range(t.ndim) if i != dim % t.ndim]
    norms = apply(linalg_vector_norm, _scores(t, importance_scores), float(n), dims)
    return _prune(module, name, _slices(t, norms, amount, dim))


def random_structured(module: Module, name: str, amount: float, dim: int) -> Any:
    """Drop random slices along `dim`. Returns the module."""
    t = getattr(module, name)
    return _prune(module, name, _slices(t, rand_like(zeros(t.shape[dim], device=t.device)), amount, dim))


class L1Unstructured:
    """For `global_unstructured`: drop the elements with the smallest absolute values."""


class RandomUnstructured:
    """For `global_unstructured`: drop random elements."""


def global_unstructured(
    parameters: Iterable[tuple[Module, str]],
    pruning_method: type,
    importance_scores: dict[tuple[Module, str], Tensor] | None = None,
    **kwargs: Any,
) -> None:
    """Drop an `amount` of the elements of all parameters together: some parameters may lose more than others.

    Args:
        parameters: pairs of a module and the name of its parameter.
        pruning_method: `L1Unstructured` or `RandomUnstructured`.
        kwargs: amount, as for the other functions.
    """
    if pruning_method not in (L1Unstructured, RandomUnstructured):
        raise ArgumentTypeError(f"global_unstructured: pruning_method={pruning_method!r}", hint="use L1Unstructured")
    pairs, given = list(parameters), importance_scores or {}
    scores = [_scores(getattr(module, name), given.get((module, name))) for module, name in pairs]
    if pruning_method is RandomUnstructured:
        scores = [rand_like(s) for s in scores]
    masks = [
        getattr(m, f"{name}_mask") if name in _hooks(m) else ones_like(s)
        for (m, name), s in zip(pairs, scores, strict=True)
    ]
    everywhere = apply(cat, [mask.reshape(-1) for mask in masks], 0) != 0
    flat = apply(cat, [s.abs().reshape(-1) for s in scores], 0)
    mask = ones_like(flat)
    mask[everywhere] = _lowest(flat[everywhere], _count(kwargs["amount"], int(everywhere.sum())))
    for (module, name), part in zip(pairs, mask.split([s.numel() for s in scores]), strict=True):
        _prune(module, name, part.view(getattr(module, name).shape))


def remove(module: Module, name: str) -> Any:
    """Make pruning permanent: the parameter holds the pruned values, without mask and hook."""
    key = _hooks(module).get(name)
    if key is None:
        raise ArgumentError(f"prune.remove: {name!r} of {type(module).__name__} is not pruned")
    del module._forward_pre_hooks[key]
    original, mask = getattr(module, f"{name}_orig"), getattr(module, f"{name}_mask")
    original.data = (original * mask).detach()
    for place in (name, f"{name}_orig", f"{name}_mask"):
        delattr(module, place)
    module.register_parameter(name, original)
    return module


def is_pruned(module: Module) -> bool:
    """Return whether a parameter of the module or of a module in it is pruned."""
    return any(_hooks(child) for child in module.modules())


__getattr__, __dir__ = names_of(__name__)
