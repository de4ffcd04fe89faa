"""Layer: a tallow module with Keras' manners."""

from __future__ import annotations

import functools
import inspect
import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np

import tallow as tl
from tallow import dtypes
from tallow.errors import ArgumentError, ArgumentTypeError, CheckpointError, MissingNameError, ShapeError, TallowError
from tallow.keras import initializers, regularizers
from tallow.keras.config import floatx
from tallow.keras.layers.checks import refuse_constraints
from tallow.keras.layers.tracking import tracked
from tallow.keras.layers.variable import Variable, make_variable
from tallow.keras.naming import automatic_name, snake_case
from tallow.keras.serialization import deserialize_keras_object, serialize_keras_object
from tallow.keras.shapes import Shape, map_shapes
from tallow.keras.structure import flatten, map_structure
from tallow.keras.symbolic import KerasTensor, Node, is_symbolic
from tallow.nn import Module, Parameter
from tallow.tensor import Tensor

# What stands in for None when a layer is run to see the shape of its result: the batch, and any other size. Twice, so
# that sizes which follow from these show by changing.
PROBES = ((1, 32), (2, 64))


class Layer(Module):
    """Base of all layers and models. A subclass defines `call`, and may define `build`, which makes its weights by
    `add_weight` when the shape of the input is known.

    A layer starts in inference mode, as Keras calls layers; `train()`, `fit` and `training=True` in a call change that.

    Args:
        trainable: whether its weights are learned.
        dtype: of its weights and its result; inputs of another floating dtype are converted.
        name: by default that of the class with a number.
        activity_regularizer: a function of the result that is added to the loss, divided by the batch's size.
        input_shape: the shape of a sample, for the first layer of a Sequential; `keras.Input` says the same.

    Example:
        class Scale(layers.Layer):
            def build(self, input_shape):
                self.factor = self.add_weight(shape=(input_shape[-1],), initializer="ones", name="factor")

            def call(self, x):
                return x * self.factor
    """

    supports_masking = False  # whether the mask of the input holds for the result
    input_spec: Any = None  # an InputSpec, or a list of them

    _call_parameters: frozenset[str] = frozenset()
    _mask_parameters: tuple[str, ...] = ()  # `query_mask` of an argument `query`, and so on
    _infers_shape = False  # whether a subclass defines compute_output_shape
    _makes_mask = False  # whether a subclass defines compute_mask
    _made_with: tuple[tuple[Any, ...], dict[str, Any]]

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        own = cls.__dict__
        if "call" in own:
            names = inspect.signature(own["call"]).parameters
            cls._call_parameters = frozenset(names)
            cls._mask_parameters = tuple(n for n in names if n.endswith("_mask") and n.removesuffix("_mask") in names)
        if "build" in own:
            cls.build = _marking_built(own["build"])  # type: ignore[method-assign]
        cls._infers_shape |= "compute_output_shape" in own
        cls._makes_mask |= "compute_mask" in own

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        made = super().__new__(cls)
        made.__dict__["_made_with"] = (args, kwargs)  # for get_config
        return made

    def __init__(
        self,
        *,
        activity_regularizer: Any = None,
        trainable: bool = True,
        dtype: Any = None,
        name: str | None = None,
        input_shape: Sequence[int | None] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__()
        if kwargs:
            raise ArgumentTypeError(f"{type(self).__name__}: unexpected arguments: {', '.join(kwargs)}")
        self.training = False
        self.built = False
        self.name = automatic_name(snake_case(type(self).__name__)) if name is None else str(name)
        self.has_own_name = name is not None
        self.activity_regularizer = regularizers.get(activity_regularizer)
        self.declared_shape: Shape | None = None if input_shape is None else (None, *input_shape)
        # Plain lists: __setattr__ would take them for lists of layers.
        self.__dict__.update(
            _trainable=bool(trainable), _dtype=_as_dtype(dtype), _losses=[], inbound_nodes=[], build_shapes=None
        )

    # ------------------------------------------------------------------------------------------- what subclasses define

    def build(self, input_shape: Any) -> None:
        """Make the weights, for inputs of this shape; with several inputs, a structure of shapes."""
        self.built = True

    def call(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__} has no call; define it")

    def compute_output_shape(self, input_shape: Any) -> Any:
        """The shape of the result for inputs of a shape; None for sizes that are not known."""
        if not self.built:
            self.build(input_shape)
        inputs = map_shapes(lambda shape: KerasTensor(shape, self.dtype), input_shape)
        return map_structure(lambda tensor: tensor.shape, self._probe((inputs,), {}))

    def compute_mask(self, inputs: Any, previous_mask: Any) -> Any:
        """The mask of the result, given those of the inputs."""
        return previous_mask

    # ---------------------------------------------------------------------------------------------------------- weights

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
        """
        refuse_constraints(self.name, constraint)
        target = self._dtype if dtype is None else _as_dtype(dtype)
        shape = () if shape is None else tuple(shape)
        if None in shape:
            raise ShapeError(
                f"{self.name}: a weight of shape {shape}: the input's size is not known", mend="give Input a full shape"
            )
        if initializer is None:
            initializer = "glorot_uniform" if target.is_floating_point else "zeros"
        _take_from_limit(self.name, math.prod(shape) * target.itemsize)
        value = initializers.get(initializer)(shape, dtype=target)
        value = value if isinstance(value, Tensor) else tl.tensor(np.asarray(value), dtype=target)
        if tuple(value.shape) != shape:
            raise ShapeError(f"{self.name}: the initializer gave {tuple(value.shape)} for a weight of shape {shape}")
        made = make_variable(value, name or "variable", trainable, regularizers.get(regularizer))
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

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except MissingNameError:
            found = getattr(type(self), name, None)
            if isinstance(found, property) and found.fget is not None:
                return found.fget(self)  # what it has to say Python has dropped, for there is a __getattr__
            raise

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
            if isinstance(child, Layer):
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
        added = [loss for module in self.modules() if isinstance(module, Layer) for loss in module._losses]
        learned = (weight for weight in self.trainable_weights if getattr(weight, "regularizer", None) is not None)
        return added + [weight.regularizer(weight) for weight in learned]

    def add_loss(self, loss: Any) -> None:
        """Within `call`: add a scalar, or several, to the loss."""
        self._losses.extend(flatten(loss))

    def clear_losses(self) -> None:
        """Forget what calls have added to the loss."""
        for module in self.modules():
            if isinstance(module, Layer):
                module._losses.clear()

    # ------------------------------------------------------------------------------------------------------------ calls

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        training = kwargs.pop("training", None)
        if kwargs or len(args) != 1 or type(args[0]) is not Tensor:
            if is_symbolic((args, kwargs)):
                return self._describe(args, kwargs if training is None else {**kwargs, "training": training})
            args, kwargs = map_structure(self._convert, args), map_structure(self._convert, kwargs)
        elif args[0].dtype is not self._dtype:
            args = (self._convert(args[0]),)
        if not self.built:
            self._build_for(args, kwargs)
        self._check_input(args)
        if training is None or bool(training) == self.training:
            return self._compute(args, kwargs)
        with self._in_mode(bool(training)):
            return self._compute(args, kwargs)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.call(*args, **kwargs)

    def _compute(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if "training" in self._call_parameters:
            kwargs["training"] = self.training
        first = args[0] if args else None
        mask = kwargs.get("mask")
        if mask is None:
            mask = masks_of(first)
            if mask is not None and "mask" in self._call_parameters:
                kwargs["mask"] = mask
        if self._mask_parameters:
            self._add_masks(args, kwargs)
        result = super().__call__(*args, **kwargs)
        if self.activity_regularizer is not None:
            self.add_loss([self.activity_regularizer(part) / len(part) for part in flatten(result)])
        if self._makes_mask or (mask is not None and self.supports_masking):
            set_masks(result, self.compute_mask(first, mask))
        elif mask is not None and not self._modules:  # those with layers inside leave it to them
            warnings.warn(
                f"{self.name}: its input has a mask of what is padding, which it does not know of and does not pass on",
                stacklevel=4,
            )
        return result

    def _add_masks(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """The masks of several arguments, for a `call` that takes them by name."""
        given = inspect.signature(self.call).bind_partial(*args, **kwargs).arguments
        for name in self._mask_parameters:
            if given.get(name) is None:
                kwargs[name] = masks_of(given.get(name.removesuffix("_mask")))

    def _convert(self, leaf: Any) -> Any:
        """Arrays as tensors, and floats in the layer's dtype."""
        if isinstance(leaf, np.ndarray | np.generic):
            leaf = tl.as_tensor(np.asarray(leaf))
        if isinstance(leaf, Tensor) and leaf.is_floating_point() and leaf.dtype is not self._dtype:
            mask = masks_of(leaf)
            leaf = leaf.to(self._dtype) if self._dtype.is_floating_point else leaf
            set_masks(leaf, mask)
        return leaf

    @contextmanager
    def _in_mode(self, training: bool) -> Iterator[None]:
        """The mode that one call asks for, in this layer and all within."""
        before = [(module, module.training) for module in self.modules()]
        self.train(training)
        try:
            yield
        finally:
            for module, mode in before:
                module.training = mode

    def _check_input(self, args: tuple[Any, ...]) -> None:
        if self.input_spec is None or not args:
            return
        specs = self.input_spec if isinstance(self.input_spec, list | tuple) else [self.input_spec]
        inputs = flatten(args[0])
        if len(inputs) != len(specs):
            raise ShapeError(f"{self.name}: expected {len(specs)} inputs, got {len(inputs)}")
        for spec, leaf in zip(specs, inputs, strict=True):
            if spec is not None:
                spec.check(self.name, tuple(getattr(leaf, "shape", ())))

    # --------------------------------------------------------------------------------------------------- symbolic calls

    def _describe(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The call as a node of a model's graph."""
        if not self.built:
            self._build_for(args, kwargs)
        self._check_input(args)
        outputs = self.compute_output_spec(*args, **kwargs)
        Node(self, args, kwargs, outputs)
        return outputs

    def compute_output_spec(self, *args: Any, **kwargs: Any) -> Any:
        """KerasTensors like the results of a call with KerasTensors."""
        if not self._infers_shape:
            return self._probe(args, kwargs)
        shapes = self._shape_arguments(self.compute_output_shape, args, kwargs)
        return map_shapes(lambda shape: KerasTensor(shape, self._dtype), self.compute_output_shape(**shapes))

    def _probe(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """`compute_output_spec` by running the layer on zeros."""
        runs = []
        for batch, size in PROBES:

            def zeros(leaf: Any, batch: int = batch, size: int = size) -> Any:
                if not isinstance(leaf, KerasTensor):
                    return leaf
                shape = [n if n is not None else batch if axis == 0 else size for axis, n in enumerate(leaf.shape)]
                return tl.zeros(*shape, dtype=leaf.dtype)

            try:
                with tl.no_grad(), self._in_mode(False):
                    runs.append(self(*map_structure(zeros, args), **map_structure(zeros, kwargs)))
            except TallowError as error:
                error.add_note(
                    f"{self.name} was run on zeros to see the shape of its result; define compute_output_shape if it "
                    "cannot be"
                )
                raise

        def compared(one: Any, other: Any) -> Any:
            sizes = zip(one.shape, other.shape, strict=True)
            return KerasTensor([n if n == m else None for n, m in sizes], one.dtype)

        self.clear_losses()
        return map_structure(compared, *runs)

    def _build_for(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        shapes = self._shape_arguments(self.build, args, kwargs)
        self.build(**shapes)

    def _shape_arguments(
        self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> dict[str, Any]:
        """The shapes that `function` asks for: of the first argument, or of those it names as in `query_shape`."""
        names = _parameter_names(function)
        call = inspect.signature(self.call).bind_partial(*args, **kwargs).arguments
        tensors = {
            name: map_structure(lambda leaf: tuple(leaf.shape), value)
            for name, value in call.items()
            if any(isinstance(leaf, Tensor | KerasTensor) for leaf in flatten(value))
            and all(hasattr(leaf, "shape") for leaf in flatten(value))
        }
        if not names:
            return {}
        if len(names) == 1 or not all(name.endswith("_shape") for name in names):
            return {names[0]: next(iter(tensors.values()), ())}
        return {name: tensors[name.removesuffix("_shape")] for name in names if name.removesuffix("_shape") in tensors}

    # ------------------------------------------------------------------------------------------- shapes and connections

    @property
    def dtype(self) -> str:
        """The name of the weights' dtype."""
        return self._dtype.name

    compute_dtype = variable_dtype = dtype

    @property
    def input(self) -> Any:
        """The KerasTensors of its one call; those of a model are its inputs."""
        node = self._only_node("input")
        return node.args[0] if node.args else node.outputs

    @property
    def output(self) -> Any:
        return self._only_node("output").outputs

    @property
    def input_shape(self) -> Any:
        return map_structure(lambda tensor: tensor.shape, self.input)

    @property
    def output_shape(self) -> Any:
        return map_structure(lambda tensor: tensor.shape, self.output)

    def _only_node(self, what: str) -> Node:
        nodes = self.inbound_nodes
        if len(nodes) != 1:
            calls = "was not called with symbolic tensors" if not nodes else f"was called {len(nodes)} times"
            raise AttributeError(f"{self.name} {calls}, so it has no one {what}")
        return nodes[0]

    # ---------------------------------------------------------------------------------------------------- configuration

    def get_config(self) -> dict[str, Any]:
        """The arguments this layer was made with, as plain values.

        A subclass may add to it; it need not, as long as its arguments are plain values, layers, initializers, or other
        objects with a `get_config`.
        """
        signature = inspect.signature(type(self).__init__)
        args, kwargs = self._made_with
        bound = signature.bind(self, *args, **kwargs)
        bound.apply_defaults()
        config: dict[str, Any] = {}
        takes_all = False
        for parameter in list(signature.parameters.values())[1:]:
            if parameter.kind is parameter.VAR_KEYWORD:
                takes_all = True
                config |= bound.arguments[parameter.name]
            elif parameter.kind is parameter.VAR_POSITIONAL:
                raise NotImplementedError(f"{type(self).__name__} takes *{parameter.name}; define its get_config")
            else:
                config[parameter.name] = bound.arguments[parameter.name]
        current = {"name": self.name, "trainable": self.trainable, "dtype": self.dtype}
        config |= {key: value for key, value in current.items() if takes_all or key in config}
        return {key: serialize_keras_object(value) for key, value in config.items()}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Any:
        """A new layer of this configuration, with new weights."""
        return cls(**{key: deserialize_keras_object(value) for key, value in config.items()})

    def extra_repr(self) -> str:
        return f"name={self.name}, built={self.built}"


def _marking_built(build: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(build)
    def marking(self: Layer, *args: Any, **kwargs: Any) -> None:
        build(self, *args, **kwargs)
        self.built = True
        self.__dict__["build_shapes"] = (args, kwargs)

    return marking


@functools.lru_cache(512)
def _names_of(function: Any) -> tuple[str, ...]:
    parameters = inspect.signature(function).parameters.values()
    return tuple(p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY))[1:]


def _parameter_names(method: Any) -> tuple[str, ...]:
    return _names_of(method.__func__)


def _as_dtype(spec: Any) -> dtypes.dtype:
    if isinstance(spec, dict):  # a DTypePolicy of a file
        spec = spec["config"]["name"]
    if spec is None:
        spec = floatx()
    if isinstance(spec, str) and spec.startswith("mixed_"):
        raise ArgumentError(f"dtype={spec!r}: mixed precision is not supported", mend="use 'float32'")
    return next((d for d in dtypes.ALL if d.name == spec), None) or dtypes.as_dtype(spec)


def _weights_of(module: Module) -> list[Any]:
    if isinstance(module, Layer):
        return module.weights
    own = [*module._parameters.values(), *module._buffers.values()]
    return [weight for weight in own if weight is not None] + [w for c in module.children() for w in _weights_of(c)]


def set_trainable(module: Module, value: bool) -> None:
    """Set `trainable` of a layer, or whether the parameters of any other module require grad."""
    if isinstance(module, Layer):
        module.trainable = value
    else:
        for parameter in module._parameters.values():
            if isinstance(parameter, Parameter):
                parameter.requires_grad_(value)


# ------------------------------------------------------------------------------------------- models of unvetted files

_bytes_left: ContextVar[int | None] = ContextVar("bytes_left", default=None)


@contextmanager
def limited_weights(size: int) -> Iterator[None]:
    """Within it, weights may take so many bytes at most: those of the file that a model is rebuilt from."""
    token = _bytes_left.set(size)
    try:
        yield
    finally:
        _bytes_left.reset(token)


def _take_from_limit(layer: str, size: int) -> None:
    left = _bytes_left.get()
    if left is None:
        return
    if size > left:
        raise CheckpointError(f"{layer} is to have a weight of {size} bytes, more than the file has left: {left}")
    _bytes_left.set(left - size)


# -------------------------------------------------------------------------------------------------------------- masks


def masks_of(structure: Any) -> Any:
    """The masks that travel with tensors: which steps of a sequence count. None if there is no mask at all."""
    if isinstance(structure, Tensor):
        return structure.__dict__.get("_keras_mask")
    if isinstance(structure, list | tuple):
        masks = [masks_of(part) for part in structure]
        return masks if any(mask is not None for mask in masks) else None
    return None


def set_masks(structure: Any, masks: Any) -> None:
    """Let masks travel with the results they belong to."""
    if isinstance(structure, Tensor):
        if isinstance(masks, Tensor):
            structure.__dict__["_keras_mask"] = masks
    elif isinstance(structure, list | tuple) and isinstance(masks, list | tuple):
        for part, mask in zip(structure, masks, strict=False):
            set_masks(part, mask)
