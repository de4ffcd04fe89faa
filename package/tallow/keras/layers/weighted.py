"""What a layer owns: weights, those of the layers within, and penalties."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

import tallow as tl
from tallow import dtypes
from tallow.errors import ArgumentError, ShapeError
from tallow.keras import constraints, initializers, regularizers
from tallow.keras.dtype_policies import DTypePolicy
from tallow.keras.layers.limits import take_from_limit
from tallow.keras.layers.tracking import tracked
from tallow.keras.layers.variable import Variable, make_variable
from tallow.keras.settings import floatx
from tallow.keras.structure import flatten
from tallow.nn import Module, Parameter
from tallow.tensor import Tensor


class Weighted(Module):
    """A module whose weights have the names, the order and the methods of Keras.

    Attributes:
        name: of the layer, for messages.
        built: whether the weights have been made.
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
        """Make a weight, to be kept as an attribute. One that is not trainable is part of the state, not learned.

        Args:
            initializer: glorot_uniform by default; zeros for integers and booleans.
            regularizer: a function of the weight that is added to the loss.
            constraint: a function of the weight whose result takes its place after each step of an optimizer.
        """
        target = self._policy.variable if dtype is None else as_dtype(dtype)
        shape = () if shape is None else tuple(shape)
        if None in shape:
            raise ShapeError(
                f"{self.name}: a weight of shape {shape}: the input's size is not known", mend="give Input a full shape"
            )
        if initializer is None:
            initializer = "glorot_uniform" if target.is_floating_point else "zeros"
        take_from_limit(self.name, math.prod(shape) * target.itemsize)
        value = initializers.get(initializer)(shape, dtype=target)
        value = value if isinstance(value, Tensor) else tl.tensor(np.asarray(value), dtype=target)
        if tuple(value.shape) != shape:
            raise ShapeError(f"{self.name}: the initializer gave {tuple(value.shape)} for a weight of shape {shape}")
        name = name or "variable"
        made = make_variable(value, name, trainable, regularizers.get(regularizer), constraints.get(constraint))
        if trainable and not self._trainable:
            made.requires_grad_(False)
        place = made.name
        while place in self._parameters or place in self._buffers:
            place += "_"
        self._file(self._parameters if trainable else self._buffers, place, made)
        return made

    def __setattr__(self, name: str, value: Any) -> None:
        if isinstance(value, Variable) and "_parameters" in self.__dict__:
            for kind in (self._parameters, self._buffers):  # add_weight filed it under a name; this one is better
                for key in [key for key, known in kind.items() if known is value and key != name]:
                    del kind[key]
        super().__setattr__(name, tracked(value) if isinstance(value, list | tuple | dict) else value)

    @property
    def weights(self) -> list[Any]:
        """All weights, each once: this layer's own, those to learn before the others; then those of its layers."""
        own: list[Any] = [*self._parameters.values()]
        own += [value for key, value in self._buffers.items() if key not in self._non_persistent_buffers_set]
        found = {id(weight): weight for weight in own if weight is not None}
        for child in self.children():
            found |= {id(weight): weight for weight in _weights_of(child)}
        return list(found.values())

    variables = weights

    @property
    def trainable_weights(self) -> list[Any]:
        return [weight for weight in self.weights if weight.requires_grad] if self.trainable else []

    trainable_variables = trainable_weights

    @property
    def non_trainable_weights(self) -> list[Any]:
        learned = {id(weight) for weight in self.trainable_weights}
        return [weight for weight in self.weights if id(weight) not in learned]

    non_trainable_variables = non_trainable_weights

    @property
    def trainable(self) -> bool:
        """Whether the weights are learned. Setting it sets that of all layers within."""
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
        """Copies of the values of `weights`."""
        return [weight.numpy(force=True).copy() for weight in self.weights]

    def set_weights(self, weights: Sequence[Any]) -> None:
        """Take values in the order of `weights`: all of them or, on an error, none.

        Raises:  ShapeError with every shape that differs
        """
        own, given = self.weights, [np.asarray(value) for value in weights]
        problems = [
            f"  {index}: {getattr(weight, 'name', 'weight')} is {tuple(weight.shape)}, given {value.shape}"
            for index, (weight, value) in enumerate(zip(own, given, strict=False))
            if tuple(weight.shape) != value.shape
        ]
        if len(own) != len(given):
            problems.append(f"  it has {len(own)} weights, given {len(given)}")
        if problems:
            raise ShapeError("\n".join([f"{self.name}: set_weights: the weights do not fit", *problems]))
        with tl.no_grad():
            for weight, value in zip(own, given, strict=True):
                weight.copy_(tl.tensor(value, dtype=weight.dtype, device=weight.device))

    def count_params(self) -> int:
        """How many numbers there are in `weights`.

        Raises:  ArgumentError for a layer that is not built
        """
        if not self.built:
            raise ArgumentError(
                f"{self.name}: it is not built, so it has no weights to count",
                mend="call it with a tensor, or model.build(input_shape), first",
            )
        return sum(weight.numel() for weight in self.weights)

    @property
    def losses(self) -> list[Tensor]:
        """What is to be added to the loss: what the last call added, and the regularization of the weights."""
        added = [loss for module in self.modules() if isinstance(module, Weighted) for loss in module._losses]
        learned = (weight for weight in self.trainable_weights if getattr(weight, "regularizer", None) is not None)
        return added + [weight.regularizer(weight) for weight in learned]

    def add_loss(self, loss: Any) -> None:
        """Within `call`: add a scalar, or several, to the loss."""
        self._losses.extend(flatten(loss))

    def clear_losses(self) -> None:
        """Forget what calls have added to the loss."""
        for module in self.modules():
            if isinstance(module, Weighted):
                module._losses.clear()


def as_dtype(spec: Any) -> dtypes.dtype:
    if spec is None:
        spec = floatx()
    return next((d for d in dtypes.ALL if d.name == spec), None) or dtypes.as_dtype(spec)


def _weights_of(module: Module) -> list[Any]:
    if isinstance(module, Weighted):
        return module.weights
    own = [*module._parameters.values(), *module._buffers.values()]
    return [weight for weight in own if weight is not None] + [w for c in module.children() for w in _weights_of(c)]


def set_trainable(module: Module, value: bool) -> None:
    """Set `trainable` of a layer, or whether the parameters of any other module require grad."""
    if isinstance(module, Weighted):
        module.trainable = value
    else:
        for parameter in module._parameters.values():
            if isinstance(parameter, Parameter):
                parameter.requires_grad_(value)
