"""The state that a layer owns: its weights, its sublayers' weights, and penalties."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

import tallow as tl
from tallow.core.tensor import Tensor
from tallow.errors import ArgumentError, ShapeError
from tallow.keras import constraints, initializers, regularizers
from tallow.keras.dtype_names import as_dtype
from tallow.keras.dtype_policies import DTypePolicy
from tallow.keras.layers.limits import take_from_limit
from tallow.keras.layers.tracking import track
from tallow.keras.layers.variable import Variable, make_variable
from tallow.keras.structure import flatten
from tallow.nn import Module, Parameter


class Weighted(Module):
    """A module whose weights have Keras' names, order and methods.

    Attributes:
        name: the name of the layer.
        built: whether the weights exist.
    """

    name: str
    built: bool
    _policy: DTypePolicy
    _trainable: bool
    _losses: list[Tensor]

    def add_weight(
        self,
        shape: Sequence[int] | None = None,
        initializer: Any = None,
        dtype: Any = None,
        trainable: bool = True,
        regularizer: Any = None,
        constraint: Any = None,
        name: str | None = None,
    ) -> Any:
        """Create a weight and register it with the layer; a weight that is not trainable is a buffer.

        Args:
            initializer: glorot_uniform by default; zeros for integers and booleans.
            regularizer: a function of the weight that is added to the loss.
            constraint: a function whose result replaces the weight after each optimizer step.

        Raises:  ShapeError for an unknown size, or an initializer's result of another shape
        """
        target = self._policy.variable if dtype is None else as_dtype(dtype)
        shape = () if shape is None else tuple(shape)
        if None in shape:
            raise ShapeError(
                f"{self.name}: a weight of shape {shape}: the input's size is unknown",
                hint="set all sizes in keras.Input",
            )
        if initializer is None:
            initializer = "glorot_uniform" if target.is_floating_point else "zeros"
        take_from_limit(self.name, math.prod(shape) * target.itemsize)
        value = initializers.get(initializer)(shape, dtype=target)
        value = value if isinstance(value, Tensor) else tl.tensor(np.asarray(value), dtype=target)
        if tuple(value.shape) != shape:
            raise ShapeError(
                f"{self.name}: the initializer returned {tuple(value.shape)} for a weight of shape {shape}"
            )
        name = name or "variable"
        weight = make_variable(value, name, trainable, regularizers.get(regularizer), constraints.get(constraint))
        weight.path = f"{self.name}/{name}"
        if trainable and not self._trainable:
            weight.requires_grad_(False)
        key = weight.name
        while key in self._parameters or key in self._buffers:
            key += "_"
        self._register(self._parameters if trainable else self._buffers, key, weight)
        return weight

    def __setattr__(self, name: str, value: Any) -> None:
        if isinstance(value, Variable) and "_parameters" in self.__dict__:
            for kind in (
                self._parameters,
                self._buffers,
            ):  # add_weight registered it under its name; the attribute's name replaces it
                for key in [key for key, weight in kind.items() if weight is value and key != name]:
                    del kind[key]
        super().__setattr__(name, track(value) if isinstance(value, list | tuple | dict) else value)

    @property
    def weights(self) -> list[Any]:
        """All weights without duplicates: the layer's own, trainable ones first, then those of its sublayers."""
        weights: list[Any] = [*self._parameters.values()]
        weights += [value for key, value in self._buffers.items() if key not in self._non_persistent_buffers_set]
        unique = {id(weight): weight for weight in weights if weight is not None}
        for child in self.children():
            unique |= {id(weight): weight for weight in _weights_of(child)}
        return list(unique.values())

    variables = weights

    @property
    def trainable_weights(self) -> list[Any]:
        """The weights that are trained."""
        return [weight for weight in self.weights if weight.requires_grad] if self.trainable else []

    trainable_variables = trainable_weights

    @property
    def non_trainable_weights(self) -> list[Any]:
        """The weights that are not trained."""
        trained = {id(weight) for weight in self.trainable_weights}
        return [weight for weight in self.weights if id(weight) not in trained]

    non_trainable_variables = non_trainable_weights

    @property
    def trainable(self) -> bool:
        """True if the weights are trained. Setting it sets it for all sublayers."""
        return self._trainable

    @trainable.setter
    def trainable(self, value: bool) -> None:
        self.__dict__["_trainable"] = bool(value)
        for parameter in self._parameters.values():
            if parameter is not None:
                parameter.requires_grad_(bool(value))
        for child in self.children():
            if isinstance(child, Weighted):
                child.trainable = value
            else:
                child.apply(lambda module: set_trainable(module, bool(value)))

    def get_weights(self) -> list[np.ndarray[Any, Any]]:
        """Return copies of the values of `weights`."""
        return [weight.numpy(force=True).copy() for weight in self.weights]

    def set_weights(self, weights: Sequence[Any]) -> None:
        """Set the values of all weights, in the order of `weights`; on an error, none changes.

        Raises:  ShapeError that lists every shape that differs
        """
        targets, values = self.weights, [np.asarray(value) for value in weights]
        problems = [
            f"  {index}: {getattr(weight, 'name', 'weight')} is {tuple(weight.shape)}, got {value.shape}"
            for index, (weight, value) in enumerate(zip(targets, values, strict=False))
            if tuple(weight.shape) != value.shape
        ]
        if len(targets) != len(values):
            problems.append(f"  expected {len(targets)} weights, got {len(values)}")
        if problems:
            raise ShapeError("\n".join([f"{self.name}: set_weights: the weights do not fit", *problems]))
        with tl.no_grad():
            for weight, value in zip(targets, values, strict=True):
                weight.copy_(tl.tensor(value, dtype=weight.dtype, device=weight.device))

    def count_params(self) -> int:
        """Return the number of elements of all weights.

        Raises:  ArgumentError if the layer is not built
        """
        if not self.built:
            raise ArgumentError(
                f"{self.name}: the layer is not built and has no weights to count",
                hint="call it with a tensor, or call model.build(input_shape), first",
            )
        return sum(weight.numel() for weight in self.weights)

    @property
    def losses(self) -> list[Tensor]:
        """The terms to add to the loss: from the last call, and from the regularizers of the weights."""
        added = [loss for module in self.modules() if isinstance(module, Weighted) for loss in module._losses]
        regularized = (weight for weight in self.trainable_weights if getattr(weight, "regularizer", None) is not None)
        return added + [weight.regularizer(weight) for weight in regularized]

    def add_loss(self, loss: Any) -> None:
        """Add a scalar, or several, to the loss; for use in `call`."""
        self._losses.extend(flatten(loss))

    def clear_losses(self) -> None:
        """Clear the losses that calls have added."""
        for module in self.modules():
            if isinstance(module, Weighted):
                module._losses.clear()


def _weights_of(module: Module) -> list[Any]:
    if isinstance(module, Weighted):
        return module.weights
    weights = [*module._parameters.values(), *module._buffers.values()]
    return [weight for weight in weights if weight is not None] + [w for c in module.children() for w in _weights_of(c)]


def set_trainable(module: Module, value: bool) -> None:
    """Set `trainable` of a layer, or whether the parameters of any other module require grad."""
    if isinstance(module, Weighted):
        module.trainable = value
    else:
        for parameter in module._parameters.values():
            if isinstance(parameter, Parameter):
                parameter.requires_grad_(value)
