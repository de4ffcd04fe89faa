"""Layer: a tallow module with Keras' manners."""

from __future__ import annotations

import copy
import functools
import inspect
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

import tallow as tl
from tallow import dtypes
from tallow.errors import ArgumentTypeError, MissingNameError, ShapeError, TallowError
from tallow.keras import dtype_policies, regularizers
from tallow.keras.layers.masks import masks_of, set_masks
from tallow.keras.layers.weighted import Weighted
from tallow.keras.naming import automatic_name, snake_case
from tallow.keras.serialization import deserialize_keras_object, serialize_keras_object
from tallow.keras.shapes import Shape, map_shapes
from tallow.keras.structure import flatten, map_structure
from tallow.keras.symbolic import KerasTensor, Node, is_symbolic
from tallow.tensor import Tensor

# What stands in for None when a layer is run to see the shape of its result: the batch, and any other size. Twice, so
# that sizes which follow from these show by changing.
PROBES = ((1, 32), (2, 64))


class Layer(Weighted):
    """Base of all layers and models. A subclass defines `call`, and may define `build`, which makes its weights by
    `add_weight` when the shape of the input is known.

    A layer starts in inference mode, as Keras calls layers; `train()`, `fit` and `training=True` in a call change that.

    Args:
        trainable: whether its weights are learned.
        dtype: of its weights and its result, or a `keras.DTypePolicy`; inputs of another floating dtype are converted.
            A mixed policy keeps weights in float32 and computes in 16 bits.
        name: by default that of the class with a number.
        activity_regularizer: a function of the result that is added to the loss, divided by the batch's size.
        input_shape: the shape of a sample, for the first layer of a Sequential, or `input_dim` if it has one dim;
            `keras.Input` says the same.

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
    _in_float32 = False  # whether it computes in float32 even where its policy says 16 bits
    _infers_shape = False  # whether a subclass defines compute_output_shape
    _makes_mask = False  # whether a subclass defines compute_mask
    _graph_attributes: tuple[str, ...] = ("inbound_nodes",)
    _policy: dtype_policies.DTypePolicy
    _dtype: dtypes.dtype  # of its result
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
        # Plain lists: __setattr__ would take them for lists of layers.
        self.__dict__.update(
            _trainable=bool(trainable),
            _policy=policy,
            _dtype=policy.compute,
            _losses=[],
            inbound_nodes=[],
            build_shapes=None,
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
        inputs = map_shapes(lambda shape: KerasTensor(shape, self._dtype), input_shape)
        return map_structure(lambda tensor: tensor.shape, self._probe((inputs,), {}))

    def compute_mask(self, inputs: Any, previous_mask: Any) -> Any:
        """The mask of the result, given those of the inputs."""
        return previous_mask

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except MissingNameError:
            found = getattr(type(self), name, None)
            if isinstance(found, property) and found.fget is not None:
                return found.fget(self)  # what it has to say Python has dropped, for there is a __getattr__
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
        elif mask is not None and not self._modules:  # those with layers inside leave it to them
            warnings.warn(
                f"{self.name}: its input has a mask of what is padding, which it does not know of and does not pass on",
                stacklevel=4,
            )
        return result

    def _compute_mixed(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The call with weights in the dtype to compute in; their gradients are in their own."""
        if self._in_float32:
            args, kwargs = (
                map_structure(lambda leaf: _as(self._policy.variable, leaf), part) for part in (args, kwargs)
            )
            result = super().__call__(*args, **kwargs)
            return map_structure(lambda leaf: _as(self._dtype, leaf), result)
        own = self._parameters
        shown = {name: None if weight is None else _as(self._dtype, weight) for name, weight in own.items()}
        self.__dict__["_parameters"] = shown
        try:
            return super().__call__(*args, **kwargs)
        finally:
            own.update((name, weight) for name, weight in shown.items() if name not in own)  # made by the call
            self.__dict__["_parameters"] = own

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
        return _as(self._dtype, leaf) if self._dtype.is_floating_point else leaf

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

    def _describe(self, args: tuple[Any, ...], kwargs: dict[str, Any], training: bool | None) -> Any:
        """The call as a node of a model's graph."""
        if not self.built:
            self._build_for(args, kwargs)
        self._check_input(args)
        outputs = self.compute_output_spec(*args, **kwargs)
        Node(self, args, kwargs if training is None else {**kwargs, "training": training}, outputs)
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
                return self._probe_value(shape, leaf.dtype)

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

    def _probe_value(self, shape: list[int], dtype: Any) -> Tensor:
        """What the layer is run on to see the shape of its result."""
        return tl.zeros(*shape, dtype=dtype)

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
    def dtype_policy(self) -> dtype_policies.DTypePolicy:
        """In what dtype it keeps its weights, and in what it computes."""
        return self._policy

    @property
    def dtype(self) -> str:
        """The name of the weights' dtype."""
        return self._policy.variable_dtype

    variable_dtype = dtype

    @property
    def compute_dtype(self) -> str:
        """The name of the dtype of its result."""
        return self._policy.compute_dtype

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
        current = {"name": self.name, "trainable": self.trainable, "dtype": self._policy.name}
        config |= {key: value for key, value in current.items() if takes_all or key in config}
        return {key: serialize_keras_object(value) for key, value in config.items()}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Any:
        """A new layer of this configuration, with new weights."""
        return cls(**{key: deserialize_keras_object(value) for key, value in config.items()})

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        """A layer with copies of the weights. It is in no model's graph: that would be copied along, to its ends."""
        made = type(self).__new__(type(self))
        memo[id(self)] = made
        kept = {key: value for key, value in self.__dict__.items() if key not in self._graph_attributes}
        made.__dict__.update(copy.deepcopy(kept, memo) | dict.fromkeys(self._graph_attributes) | {"inbound_nodes": []})
        return made

    def extra_repr(self) -> str:
        return f"name={self.name}, built={self.built}"


def _as(dtype: dtypes.dtype, leaf: Any) -> Any:
    """A tensor of floats in a dtype; anything else as it is."""
    if not isinstance(leaf, Tensor) or not leaf.is_floating_point() or leaf.dtype is dtype:
        return leaf
    mask = masks_of(leaf)
    leaf = leaf.to(dtype)
    set_masks(leaf, mask)
    return leaf


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
