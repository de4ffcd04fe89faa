"""Sequential: a linear stack of layers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tallow.errors import ArgumentError, ArgumentTypeError
from tallow.keras.layers import Input, InputLayer, Layer
from tallow.keras.layers.masks import with_masks
from tallow.keras.models.graph import Graph
from tallow.keras.models.model import Model
from tallow.keras.serialization import deserialize_keras_object, serialize_keras_object
from tallow.keras.symbolic import KerasTensor


class Sequential(Model):
    """A stack of layers, each called with the output of the previous one.

    The weights are created once the input shape is known: from an `Input` as first item, from `input_shape` of the
    first layer, from `build(input_shape)`, or from the first call.

    Example:
        >>> from tallow import keras
        >>> model = keras.Sequential([keras.Input(shape=(4,)), keras.layers.Dense(2)])
        >>> model.output_shape
        (None, 2)
    """

    calls_at_start = 0
    _graph_attributes = ("inbound_nodes", "_graph", "_input", "_last")

    def __init__(self, layers: Sequence[Any] | None = None, trainable: bool = True, name: str | None = None) -> None:
        super().__init__(name=name, trainable=trainable)
        self.__dict__.update(_chain=[], _input=None, _last=None)
        for layer in layers or ():
            self._append(layer)
        self._update()

    def add(self, layer: Any) -> None:
        """Add a layer or an input at the end."""
        self._append(layer)
        self._update()

    def pop(self) -> Layer:
        """Remove and return the last layer."""
        if not self._chain:
            raise ArgumentError(f"{self.name} has no layers")
        layer: Layer = self._chain.pop()
        if self._graph is not None:
            layer.inbound_nodes.remove(self._graph.outputs[0].history.node)
            last = self._chain[-1].inbound_nodes[-1].outputs if self._chain else self._input
            self.__dict__.update(_graph=Graph(self._input, last), _last=last)
        self._name_children(self._chain)
        return layer

    def _append(self, layer: Any) -> None:
        """Append a layer; if the input is known, call it with the current output."""
        if isinstance(layer, KerasTensor):
            layer = layer.history.layer
        if isinstance(layer, InputLayer):
            self._set_input(layer)
            return
        if not isinstance(layer, Layer):
            raise ArgumentTypeError(
                f"{self.name}: {layer!r:.100} is not a layer", hint="pass an instance of keras.Layer"
            )
        if any(layer.name == other.name for other in self._chain):
            raise ArgumentError(f"{self.name} already has a layer named {layer.name!r}", hint="use unique layer names")
        if not self._chain and self._input is None:
            if isinstance(layer, Model) and layer._graph is not None:
                self._set_input(InputLayer(batch_shape=layer.input_shape, dtype=layer.inputs[0].dtype))
            elif layer.declared_shape is not None:
                self._set_input(InputLayer(batch_shape=layer.declared_shape, dtype=layer.compute_dtype))
        self._chain.append(layer)
        if self._input is not None:
            self.__dict__["_last"] = layer(self._last)

    def _set_input(self, layer: InputLayer) -> None:
        if self._chain or self._input is not None:
            raise ArgumentError(f"{self.name}: only one input is allowed, and it must be first")
        self.__dict__["_input"] = self.__dict__["_last"] = layer.inbound_nodes[0].outputs

    def _update(self) -> None:
        self._name_children(self._chain)
        if self._input is not None and self._chain:
            self._set_graph(Graph(self._input, self._last))

    def _describe_from(self, tensor: KerasTensor) -> None:
        """Call all layers with this symbolic input."""
        self.__dict__["_input"] = self.__dict__["_last"] = tensor
        for layer in self._chain:
            self.__dict__["_last"] = layer(self._last)
        self._update()

    def build(self, input_shape: Any = None) -> None:
        if self._graph is None and self._chain:
            if input_shape is None:
                raise ArgumentError(
                    f"{self.name}: build needs the input shape", hint="for example model.build((None, 784))"
                )
            self._describe_from(Input(batch_shape=tuple(input_shape)))

    def _build_for(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        x = args[0] if args else kwargs["inputs"]
        if not self._chain:
            raise ArgumentError(
                f"{self.name} has no layers", hint="add a layer, for example model.add(layers.Dense(10))"
            )
        if not hasattr(x, "shape"):
            raise ArgumentTypeError(f"{self.name}: a Sequential takes one tensor, not {type(x).__name__}")
        self._describe_from(Input(batch_shape=(None, *x.shape[1:]), dtype=x.dtype))

    def call(self, inputs: Any, training: bool | None = None, mask: Any = None) -> Any:
        """Run the layers, each of which checks its own input; other sizes than those of `build` are allowed."""
        graph = self._require_graph()
        return graph.run(with_masks(graph.align(inputs, self.name), mask))

    def _replace_graph(self, graph: Graph) -> None:
        self.__dict__.update(_graph=graph, _input=graph.inputs[0], _last=graph.outputs[0])

    @property
    def layers(self) -> list[Layer]:
        """The layers, without the input."""
        return list(self._chain)

    def get_config(self) -> dict[str, Any]:
        inputs = [] if self._input is None else [self._input.history.layer]
        return {
            "name": self.name,
            "trainable": self.trainable,
            "dtype": self.dtype_policy.name,
            "layers": [serialize_keras_object(layer) for layer in (*inputs, *self._chain)],
            "build_input_shape": None if self._input is None else list(self._input.shape),
        }

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: Any = None) -> Any:
        layers = [deserialize_keras_object(layer, custom_objects) for layer in config["layers"]]
        model = cls(layers, name=config.get("name"))
        if model._graph is None and config.get("build_input_shape"):
            model.build(config["build_input_shape"])
        if not config.get("trainable", True):
            model.trainable = False
        return model
