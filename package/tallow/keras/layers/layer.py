"""Layer: a tallow module that behaves like a Keras layer."""

from __future__ import annotations

import copy
import functools
import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

import tallow as tl
from tallow import dtypes
from tallow.core.tensor import Tensor
from tallow.errors import ArgumentTypeError, MissingNameError, ShapeError, TallowError, warn
from tallow.keras import dtype_policies, regularizers
from tallow.keras.layers.masks import masks_of, set_masks
from tallow.keras.layers.weighted import Weighted
from tallow.keras.naming import automatic_name, snake_case
from tallow.keras.serialization import deserialize_keras_object, serialize_keras_object
from tallow.keras.shapes import Shape, map_shapes
from tallow.keras.structure import flatten, map_structure
from tallow.keras.symbolic import KerasTensor, Node, is_symbolic

# Sizes that replace None (the batch, any other) when a layer is run to infer its output shape. Two runs, so that
# output sizes that depend on them show by changing.
PROBES = ((1, 32), (2, 64))


class Layer(Weighted):
    """Base class of all layers and models.

    A subclass defines `call`, and may define `build`, which creates the weights with `add_weight` once the input shape
    is known. A layer starts in inference mode, in which Keras calls layers; `train()`, `fit` and `training=True` in a
    call change that.

    Args:
        trainable: whether the weights are trained.
        dtype: the dtype of the weights and the output, or a `keras.DTypePolicy`; inputs of another floating dtype are
            converted. A mixed policy keeps weights in float32 and computes in 16 bits.
        name: by default the class name with a number.
        activity_regularizer: a function of the output that is added to the loss, divided by the batch size.
        input_shape: the shape of a sample, for the first layer of a Sequential, or `input_dim` for one dim; the same as
            `keras.Input`.

    Example:
        class Scale(layers.Layer):
            def build(self, input_shape):
                self.factor = self.add_weight(shape=(input_shape[-1],), initializer="ones", name="factor")

            def call(self, x):
                return x * self.factor
    """

    supports_masking = False  # whether the input's mask also applies to the output
    input_spec: Any = None  # an InputSpec, or a list of them

    _call_parameters: frozenset[str] = frozenset()
    _mask_parameters: tuple[str, ...] = ()  # such as `query_mask` for an argument `query`
    _in_float32 = False  # whether to compute in float32 even under a 16-bit policy
    _infers_shape = False  # whether a subclass defines compute_output_shape
    _makes_mask = False  # whether a subclass defines compute_mask
    _graph_attributes: tuple[str, ...] = ("inbound_nodes",)
    _policy: dtype_policies.DTypePolicy
    _dtype: dtypes.dtype  # of the output
    _init_arguments: tuple[tuple[Any, ...], dict[str, Any]]

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        namespace = cls.__dict__
        if "call" in namespace:
            names = inspect.signature(namespace["call"]).parameters
            cls._call_parameters = frozenset(names)
            cls._mask_parameters = tuple(n for n in names if n.endswith("_mask") and n.removesuffix("_mask") in names)
        if "build" in namespace:
            cls.build = _mark_built(namespace["build"])  # type: ignore[method-assign]
        cls._infers_shape |= "compute_output_shape" in namespace
        cls._makes_mask |= "compute_mask" in namespace

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        layer = super().__new__(cls)
        layer.__dict__["_init_arguments"] = (args, kwargs)  # for get_config
        return layer

    def __init__(
        self,
        *,
        activity_regularizer: Any = None,
        trainable: bool = True,
        dtype: Any = None,
        name: str | None = None,
        input_shape: Sequence[int | None] | None = None,
        input_dim: int | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__()
        if kwargs:
            raise ArgumentTypeError(f"{type(self).__name__}: unexpected arguments: {', '.join(kwargs)}")
        self.training = False
        self.built = False
        self.name = automatic_name(snake_case(type(self).__name__)) if name is None else str(name)
        self.activity_regularizer = regularizers.get(activity_regularizer)
        if input_dim is not None:
            input_shape = (input_dim,)
        self.declared_shape: Shape | None = None if input_shape is None else (None, *input_shape)
        policy = dtype_policies.get(dtype)
        # Bypass __setattr__, which would register the lists as lists of layers.
        self.__dict__.update(
            _trainable=bool(trainable),
            _policy=policy,
            _dtype=policy.compute,
            _losses=[],
            inbound_nodes=[],
            build_shapes=None,
        )

    # -------------------------------------------------------------------------------------------- defined by subclasses

    def build(self, input_shape: Any) -> None:
        """Create the weights for inputs of this shape; with several inputs, for a structure of shapes."""
        self.built = True

    def call(self, *args: Any, **kwargs: Any) -> Any:
        """Compute the outputs; subclasses define it."""
        raise NotImplementedError(f"{type(self).__name__} does not define call")

    def compute_output_shape(self, input_shape: Any) -> Any:
        """Return the output shape for an input shape, with None for unknown sizes."""
        if not self.built:
            self.build(input_shape)
        inputs = map_shapes(lambda shape: KerasTensor(shape, self._dtype), input_shape)
        return map_structure(lambda tensor: tensor.shape, self._probe((inputs,), {}))

    def compute_mask(self, inputs: Any, previous_mask: Any) -> Any:
        """Return the mask of the output, from the masks of the inputs."""
        return previous_mask

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except MissingNameError:
            attribute = getattr(type(self), name, None)
            if isinstance(attribute, property) and attribute.fget is not None:
                return attribute.fget(self)  # raises the property's own error, which __getattr__ replaced
            raise

    # ------------------------------------------------------------------------------------------------------------ calls

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        training = kwargs.pop("training", None)
        if kwargs or len(args) != 1 or type(args[0]) is not Tensor:
            if is_symbolic((args, kwargs)):
                return self._describe(args, kwargs, training)
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
        """Call `call`, as a tallow module."""
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
        if self._policy.compute is self._policy.variable:
            result = super().__call__(*args, **kwargs)
        else:
            result = self._compute_mixed(args, kwargs)
        if self.activity_regularizer is not None:
            self.add_loss([self.activity_regularizer(part) / len(part) for part in flatten(result)])
        if self._makes_mask or (mask is not None and self.supports_masking):
            set_masks(result, self.compute_mask(first, mask))
        elif mask is not None and not self._modules:  # layers that contain layers leave it to them
            warn(f"{self.name}: the layer does not support masks; it ignores its input's mask and drops it")
        return result

    def _compute_mixed(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call the layer with weights cast to the compute dtype; gradients reach the original weights."""
        if self._in_float32:
            args, kwargs = (
                map_structure(lambda leaf: _as(self._policy.variable, leaf), part) for part in (args, kwargs)
            )
            result = super().__call__(*args, **kwargs)
            return map_structure(lambda leaf: _as(self._dtype, leaf), result)
        parameters = self._parameters
        cast = {name: None if weight is None else _as(self._dtype, weight) for name, weight in parameters.items()}
        self.__dict__["_parameters"] = cast
        try:
            return super().__call__(*args, **kwargs)
        finally:
            parameters.update(
                (name, weight) for name, weight in cast.items() if name not in parameters
            )  # created by the call
            self.__dict__["_parameters"] = parameters

    def _add_masks(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Pass the masks of several inputs to a `call` that has parameters for them."""
        arguments = inspect.signature(self.call).bind_partial(*args, **kwargs).arguments
        for name in self._mask_parameters:
            if arguments.get(name) is None:
                kwargs[name] = masks_of(arguments.get(name.removesuffix("_mask")))

    def _convert(self, leaf: Any) -> Any:
        """Convert arrays to tensors, and floats to the layer's dtype."""
        if isinstance(leaf, np.ndarray | np.generic):
            leaf = tl.as_tensor(np.asarray(leaf))
        return _as(self._dtype, leaf) if self._dtype.is_floating_point else leaf

    @contextmanager
    def _in_mode(self, training: bool) -> Iterator[None]:
        """Set the training mode of this layer and its sublayers for one call."""
        modes = [(module, module.training) for module in self.modules()]
        self.train(training)
        try:
            yield
        finally:
            for module, mode in modes:
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

    def _describe(self, args: tuple[Any, ...], kwargs: dict[str, Any], training: bool | None) -> Any:
        """Record the call as a node of a model's graph."""
        if not self.built:
            self._build_for(args, kwargs)
        self._check_input(args)
        outputs = self.compute_output_spec(*args, **kwargs)
        Node(self, args, kwargs if training is None else {**kwargs, "training": training}, outputs)
        return outputs

    def compute_output_spec(self, *args: Any, **kwargs: Any) -> Any:
        """Return KerasTensors with the shapes and dtypes of the outputs of a symbolic call."""
        if not self._infers_shape:
            return self._probe(args, kwargs)
        shapes = self._shape_arguments(self.compute_output_shape, args, kwargs)
        return map_shapes(lambda shape: KerasTensor(shape, self._dtype), self.compute_output_shape(**shapes))

    def _probe(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Infer the output by running the layer on zeros."""
        runs = []
        for batch, size in PROBES:

            def zeros(leaf: Any, batch: int = batch, size: int = size) -> Any:
                if not isinstance(leaf, KerasTensor):
                    return leaf
                shape = [n if n is not None else batch if axis == 0 else size for axis, n in enumerate(leaf.shape)]
                return self._probe_value(shape, leaf.dtype)

            try:
                with tl.no_grad(), self._in_mode(False):
                    runs.append(self(*map_structure(zeros, args), **map_structure(zeros, kwargs)))
            except TallowError as error:
                error.add_note(
                    f"{self.name} was called with zeros to infer its output shape; if that is impossible, define "
                    "compute_output_shape"
                )
                raise

        def common_shape(first: Any, second: Any) -> Any:
            sizes = zip(first.shape, second.shape, strict=True)
            return KerasTensor([n if n == m else None for n, m in sizes], first.dtype)

        self.clear_losses()
        return map_structure(common_shape, *runs)

    def _probe_value(self, shape: list[int], dtype: Any) -> Tensor:
        """Return the value that replaces a symbolic tensor while the output shape is inferred."""
        return tl.zeros(shape, dtype=dtype)

    def _build_for(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        shapes = self._shape_arguments(self.build, args, kwargs)
        self.build(**shapes)

    def _shape_arguments(
        self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> dict[str, Any]:
        """Return the shapes that `function` takes: of the first argument, or by name, as in `query_shape`."""
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
    def dtype_policy(self) -> dtype_policies.DTypePolicy:
        """The policy with the dtype of the weights and the dtype of the computation."""
        return self._policy

    @property
    def dtype(self) -> str:
        """The name of the dtype of the weights."""
        return self._policy.variable_dtype

    variable_dtype = dtype

    @property
    def compute_dtype(self) -> str:
        """The name of the dtype of the output."""
        return self._policy.compute_dtype

    @property
    def input(self) -> Any:
        """The KerasTensors of the layer's only symbolic call; for a model, its inputs."""
        node = self._only_node("input")
        return node.args[0] if node.args else node.outputs

    @property
    def output(self) -> Any:
        """The output KerasTensors of the layer's only symbolic call."""
        return self._only_node("output").outputs

    @property
    def input_shape(self) -> Any:
        """The shapes of `input`."""
        return map_structure(lambda tensor: tensor.shape, self.input)

    @property
    def output_shape(self) -> Any:
        """The shapes of `output`."""
        return map_structure(lambda tensor: tensor.shape, self.output)

    def _only_node(self, what: str) -> Node:
        nodes = self.inbound_nodes
        if len(nodes) != 1:
            calls = "was not called with symbolic tensors" if not nodes else f"was called {len(nodes)} times"
            raise AttributeError(f"{self.name} {calls}, so its {what} is not defined")
        return nodes[0]

    # ---------------------------------------------------------------------------------------------------- configuration

    def get_config(self) -> dict[str, Any]:
        """Return the constructor arguments as plain values.

        A subclass may add to them; it need not if its arguments are plain values, layers, initializers, or other
        objects with a `get_config`.
        """
        signature = inspect.signature(type(self).__init__)
        args, kwargs = self._init_arguments
        bound = signature.bind(self, *args, **kwargs)
        bound.apply_defaults()
        config: dict[str, Any] = {}
        has_kwargs = False
        for parameter in list(signature.parameters.values())[1:]:
            if parameter.kind is parameter.VAR_KEYWORD:
                has_kwargs = True
                config |= bound.arguments[parameter.name]
            elif parameter.kind is parameter.VAR_POSITIONAL:
                raise NotImplementedError(f"{type(self).__name__} takes *{parameter.name}; define its get_config")
            else:
                config[parameter.name] = bound.arguments[parameter.name]
        current = {"name": self.name, "trainable": self.trainable, "dtype": self._policy.name}
        config |= {key: value for key, value in current.items() if has_kwargs or key in config}
        return {key: serialize_keras_object(value) for key, value in config.items()}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Any:
        """Create a layer from its configuration, with new weights."""
        return cls(**{key: deserialize_keras_object(value) for key, value in config.items()})

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        """Copy the layer and its weights, but not its nodes in a model's graph, which would copy the whole model."""
        duplicate = type(self).__new__(type(self))
        memo[id(self)] = duplicate
        attributes = {key: value for key, value in self.__dict__.items() if key not in self._graph_attributes}
        duplicate.__dict__.update(
            copy.deepcopy(attributes, memo) | dict.fromkeys(self._graph_attributes) | {"inbound_nodes": []}
        )
        return duplicate

    def extra_repr(self) -> str:
        return f"name={self.name}, built={self.built}"


def _as(dtype: dtypes.dtype, leaf: Any) -> Any:
    """Cast a floating-point tensor and keep its mask; return anything else unchanged."""
    if not isinstance(leaf, Tensor) or not leaf.is_floating_point() or leaf.dtype is dtype:
        return leaf
    mask = masks_of(leaf)
    leaf = leaf.to(dtype)
    set_masks(leaf, mask)
    return leaf


def _mark_built(build: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(build)
    def marking(self: Layer, *args: Any, **kwargs: Any) -> None:
        build(self, *args, **kwargs)
        self.built = True
        self.__dict__["build_shapes"] = (args, kwargs)

    return marking


@functools.lru_cache(512)
def _parameters_of(function: Any) -> tuple[str, ...]:
    parameters = inspect.signature(function).parameters.values()
    return tuple(p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY))[1:]


def _parameter_names(method: Any) -> tuple[str, ...]:
    return _parameters_of(method.__func__)
