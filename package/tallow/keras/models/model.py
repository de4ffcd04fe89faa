"""Model: a set of layers that are trained together."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import tallow as tl
from tallow.core.tensor import Tensor
from tallow.errors import ArgumentError
from tallow.io.source import Path
from tallow.keras import saving
from tallow.keras.layers import InputLayer, Layer
from tallow.keras.layers.masks import with_masks
from tallow.keras.models import functional_config
from tallow.keras.models.graph import Graph, child_names
from tallow.keras.models.summary import print_summary
from tallow.keras.naming import automatic_name
from tallow.keras.saving import onnx_file
from tallow.keras.serialization import serialize_keras_object, to_json
from tallow.keras.shapes import map_shapes
from tallow.keras.structure import map_structure
from tallow.keras.symbolic import KerasTensor
from tallow.keras.trainer import Trainer
from tallow.nn import Module


class Model(Trainer, Layer):
    """A group of layers with inputs and outputs, and methods that train them.

    Either a functional model, `keras.Model(inputs, outputs)`, whose outputs result from calling layers with the inputs;
    or a subclass that defines `call` and has layers as attributes.

    Args:
        inputs, outputs: KerasTensors, or lists or dicts of them.

    Example:
        class Classifier(keras.Model):
            def __init__(self):
                super().__init__()
                self.hidden = layers.Dense(64, activation="relu")
                self.head = layers.Dense(10)

            def call(self, x):
                return self.head(self.hidden(x))
    """

    _graph: Graph | None
    _graph_attributes: tuple[str, ...] = ("inbound_nodes", "_graph")

    def __init__(self, inputs: Any = None, outputs: Any = None, *, name: str | None = None, **kwargs: Any) -> None:
        if (inputs is None) != (outputs is None):
            raise ArgumentError("Model: inputs or outputs is missing", hint="pass both, or neither in a subclass")
        is_plain = inputs is not None and type(self) is Model
        super().__init__(name=automatic_name("functional") if is_plain and name is None else name, **kwargs)
        self.__dict__["_graph"] = None
        if inputs is not None:
            self._set_graph(Graph(inputs, outputs))

    def _set_graph(self, graph: Graph) -> None:
        self.__dict__["_graph"] = graph
        self._name_children([layer for layer in graph.layers if not isinstance(layer, InputLayer)])
        self.built = True

    def _name_children(self, layers: list[Layer]) -> None:
        """Register the layers as children under their `state_dict` names."""
        attributes = {key: child for key, child in self._modules.items() if child not in layers}
        self._modules = {**dict(zip(child_names(layers), layers, strict=True)), **attributes}

    # ------------------------------------------------------------------------------------------------------------ calls

    def call(self, inputs: Any, training: bool | None = None, mask: Any = None) -> Any:
        if self._graph is None:
            raise NotImplementedError(
                f"{type(self).__name__} does not define call; define it, or use keras.Model(inputs, outputs)"
            )
        values = self._graph.align(inputs, self.name)
        self._graph.check_shapes(values, self.name)
        return self._graph.run(with_masks(values, mask))

    def _compute(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        self.clear_losses()
        return super()._compute(args, kwargs)

    def compute_output_spec(self, *args: Any, **kwargs: Any) -> Any:
        if self._graph is None:
            return super().compute_output_spec(*args, **kwargs)
        self._graph.check_shapes(self._graph.align(args[0] if args else kwargs["inputs"], self.name), self.name)
        return map_structure(lambda t: KerasTensor(t.shape, t.dtype), self._graph.output_structure)

    def _convert(self, leaf: Any) -> Any:
        """Convert as a layer does; a functional model keeps the dtypes of its inputs."""
        if self._graph is None:
            return super()._convert(leaf)
        return tl.as_tensor(np.asarray(leaf)) if isinstance(leaf, np.ndarray | np.generic) else leaf

    # ------------------------------------------------------------------------------------------------------------ build

    def build(self, input_shape: Any) -> None:
        """Create all weights for inputs of this shape, which starts with the batch size or None."""
        if self._graph is None:
            self._probe((map_shapes(lambda shape: KerasTensor(shape, self._dtype), input_shape),), {})

    def _build_for(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if type(self).build is not Model.build:
            super()._build_for(args, kwargs)
            return
        # The current call builds the layers, so that a separate run is unnecessary.
        shapes = self._shape_arguments(self.build, args, kwargs)
        self.__dict__["build_shapes"] = ((), {k: map_shapes(_any_batch, v) for k, v in shapes.items()})
        self.built = True

    def _ensure_built(self, x: Any) -> None:
        """Create missing weights by running a sample of the first batch `x` in inference mode."""
        if all(layer.built for layer in self.flat_layers()):
            return

        def sample(leaf: Any) -> Any:
            return leaf[:1] if isinstance(leaf, Tensor | np.ndarray) else leaf

        with tl.no_grad():
            self(map_structure(sample, x), training=False)

    def flat_layers(self) -> Iterator[Layer]:
        """Yield the model itself and all nested layers."""
        return (module for module in self.modules() if isinstance(module, Layer))

    # ----------------------------------------------------------------------------------------------------------- layers

    @property
    def calls_at_start(self) -> int:
        """The index of the first call in Keras' files: creating a functional model counts as one call."""
        return int(self._graph is not None)

    @property
    def layers(self) -> list[Layer]:
        """The layers in the order of `get_weights`; a functional model includes its inputs."""
        if self._graph is not None:
            return list(self._graph.layers)
        return list(_layers_within(self))

    def get_layer(self, name: str | None = None, index: int | None = None) -> Layer:
        """Return a layer by its name, or by its index in `layers`.

        Raises:  ArgumentError for an unknown name or an index out of range
        """
        layers = self.layers
        if (name is None) == (index is None):
            raise ArgumentError("get_layer: pass either a name or an index")
        if index is not None:
            if not -len(layers) <= index < len(layers):
                raise ArgumentError(f"get_layer: index {index}, but {self.name} has {len(layers)} layers")
            return layers[index]
        for layer in layers:
            if layer.name == name:
                return layer
        raise ArgumentError(
            f"{self.name} has no layer {name!r}", hint=f"available layers: {', '.join(layer.name for layer in layers)}"
        )

    @property
    def inputs(self) -> list[KerasTensor]:
        """The input KerasTensors of a functional model, as a list."""
        return self._require_graph().inputs

    @property
    def outputs(self) -> list[KerasTensor]:
        """The output KerasTensors of a functional model, as a list."""
        return self._require_graph().outputs

    @property
    def input(self) -> Any:
        """The input structure of a functional model."""
        return super().input if self._graph is None else self._graph.input_structure

    @property
    def output(self) -> Any:
        """The output structure of a functional model."""
        return super().output if self._graph is None else self._graph.output_structure

    @property
    def input_names(self) -> list[str]:
        """The names of the inputs."""
        return [tensor.name for tensor in self.inputs]

    @property
    def output_names(self) -> list[str]:
        """The names of the layers that compute the outputs."""
        return [tensor.history.layer.name for tensor in self.outputs]

    def _require_graph(self) -> Graph:
        if self._graph is None:
            raise AttributeError(
                f"{self.name} has no symbolic inputs and outputs; they need "
                "keras.Model(inputs, outputs) or a Sequential with a known input shape"
            )
        return self._graph

    def summary(
        self,
        line_length: int | None = None,
        positions: list[float] | None = None,
        print_fn: Callable[[str], Any] | None = None,
        expand_nested: bool = False,
        show_trainable: bool = False,
        layer_range: tuple[str, str] | None = None,
    ) -> None:
        """Print a table of the layers, their output shapes and parameter counts.

        Args:
            line_length: the width of the table, in characters.
            positions: the ends of the columns, as fractions of the width.
            print_fn: called once with the text; `print` by default.
            expand_nested: also show the layers of nested models.
            show_trainable: show which layers are trainable.
            layer_range: the names, or regular expressions, of the first and the last layer to show.
        """
        print_summary(self, line_length, positions, print_fn, expand_nested, show_trainable, layer_range)

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        duplicate = super().__deepcopy__(memo)
        if self._graph is not None:
            duplicate._replace_graph(self._graph.replay(lambda layer: copy.deepcopy(layer, memo)))
        return duplicate

    def _replace_graph(self, graph: Graph) -> None:
        self.__dict__["_graph"] = graph

    # --------------------------------------------------------------------------------------------- configuration, files

    def get_config(self) -> dict[str, Any]:
        if self._graph is not None and type(self).__init__ is Model.__init__:
            return functional_config.get_config(self)
        return super().get_config()

    def file_entry(self) -> dict[str, Any] | None:
        """Return the entry of a functional model, which Keras' files call Functional; None for other models."""
        if type(self) is not Model or self._graph is None:
            return None
        kind = {"module": "keras.src.models.functional", "class_name": "Functional", "registered_name": "Functional"}
        return {**kind, "config": serialize_keras_object(self.get_config())}

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: Any = None) -> Any:
        if "input_layers" in config:
            return functional_config.from_config(cls, config, custom_objects)
        return super().from_config(config)

    def save(self, filepath: Path, overwrite: bool = True, include_optimizer: bool = True) -> None:
        """Write architecture, weights and optimizer to a `.keras` file; see `keras.saving`."""
        saving.save_model(self, filepath, overwrite, include_optimizer)

    def export(
        self,
        filepath: Path,
        format: str = "tf_saved_model",
        verbose: bool | None = None,
        input_signature: Any = None,
        *,
        opset_version: int | None = None,
    ) -> None:
        """Write the model as an ONNX file, for `format="onnx"`; other formats are refused.

        Args:    as keras.Model.export; sizes that the inputs leave open vary in the file
        """
        onnx_file.export(self, filepath, format, verbose, input_signature, opset_version)

    def save_weights(self, filepath: Path, overwrite: bool = True) -> None:
        """Write the weights to a `.weights.h5` or a `.safetensors` file; see `keras.saving.save_weights`."""
        saving.save_weights(self, filepath, overwrite)

    def load_weights(self, filepath: Path, skip_mismatch: bool = False) -> None:
        """Load weights from a file; see `keras.saving.load_weights`."""
        saving.load_weights(self, filepath, skip_mismatch)

    def to_json(self, **kwargs: Any) -> str:
        """Return the architecture, without weights, as JSON; `keras.models.model_from_json` reads it."""
        return to_json(serialize_keras_object(self), **kwargs)


def _layers_within(module: Module) -> Iterator[Layer]:
    """Yield the nearest layers below a module, including those in lists."""
    for child in module.children():
        if isinstance(child, Layer):
            yield child
        else:
            yield from _layers_within(child)


def _any_batch(shape: Any) -> tuple[int | None, ...]:
    return (None, *shape[1:])
