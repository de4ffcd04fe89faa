"""ONNXProgram: an exported graph as messages of ONNX, and how it is written to files."""

from __future__ import annotations

import io
import os
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np

import tallow
from tallow import dtypes
from tallow.core.tensor import Tensor, wrap
from tallow.errors import ArgumentError, ArgumentTypeError, NumericError, UnsupportedError
from tallow.export.program import ExportedProgram
from tallow.export.signature import OutputKind
from tallow.functions.elementwise import allclose
from tallow.io.atomic import atomic_write
from tallow.onnx.exporters.builder import Call, Value
from tallow.onnx.exporters.conversion import Conversion
from tallow.onnx.exporters.dynamic import Axes, places_of
from tallow.onnx.exporters.layouts import laid_out
from tallow.onnx.loading import load
from tallow.onnx.protobuf import (
    EXTERNAL,
    AttributeProto,
    AttributeType,
    Dimension,
    GraphProto,
    ModelProto,
    NodeProto,
    OperatorSetIdProto,
    TensorProto,
    TensorShapeProto,
    TensorType,
    TypeProto,
    ValueInfoProto,
    write,
)
from tallow.onnx.tensors import DATA_TYPES, external_place, tensor_proto
from tallow.tape.modes import no_grad

LARGEST = 1536 << 20  # bytes of weights in one file, as in PyTorch; protobuf ends at 2 GiB
SMALLEST = 1024  # bytes of a tensor that is written to the second file
ALIGNMENT = 4096  # of a tensor there, so that it can be mapped
IR_VERSIONS = {18: 8, 19: 9, 20: 9, 21: 10, 22: 10, 23: 11, 24: 12, 25: 13, 26: 13}  # opset -> version of the format


class ONNXProgram:
    """The result of `tl.onnx.export`: the messages of the file, to be saved or inspected.

    Attributes:
        exported_program: the program that was exported.
        model_proto: the model as a message, with all weights.
    """

    def __init__(
        self,
        conversion: Conversion,
        input_names: Sequence[str] | None,
        output_names: Sequence[str] | None,
        axes: Axes,
    ) -> None:
        self.exported_program: ExportedProgram = conversion.program
        self._arguments = conversion.arguments
        self.model_proto: ModelProto = _Messages(conversion, input_names, output_names, axes).model()

    def save(
        self,
        destination: str | os.PathLike[str] | IO[bytes],
        *,
        include_initializers: bool = True,
        keep_initializers_as_inputs: bool = False,
        external_data: bool | None = None,
    ) -> None:
        """Write the model to a path or to a binary file.

        Args:
            include_initializers: write the weights.
            keep_initializers_as_inputs: make weights inputs as well, so that a caller may pass others.
            external_data: write weights of 1 KiB or more to a second file, `destination` with `.data` behind it. This
                is always done for more than 1.5 GiB. A binary file gets everything.

        Raises: ArgumentTypeError for another destination; UnsupportedError for a binary file and more than 1.5 GiB
        """
        graph = self.model_proto.graph
        assert graph is not None
        weights = list(graph.initializer)
        inputs = list(graph.input)
        if keep_initializers_as_inputs:
            inputs += [_declaration(t.name, t.data_type, t.dims) for t in weights]
        is_large = sum(_size(t) for t in weights) > LARGEST
        path = None
        if isinstance(destination, str | os.PathLike):
            path = Path(destination)
        elif not hasattr(destination, "write"):
            raise ArgumentTypeError(f"onnx.export: f must be a path or a binary file, not {type(destination).__name__}")
        elif is_large and include_initializers:
            raise UnsupportedError("onnx.export: a file holds at most 2 GiB of weights", hint="pass a path")
        written = weights if include_initializers else []
        if path is not None and written and (external_data or is_large):
            written = _outside(written, path.with_name(path.name + ".data"))
        model = _copied(self.model_proto, graph=_copied(graph, initializer=written, input=inputs))
        if path is None:
            write(model, destination)  # type: ignore[arg-type]
            return
        with atomic_write(path) as file:  # the weights may be mapped from the file of this name
            write(model, file)

    def verify(self, tolerance: float = 1e-4) -> None:
        """Load the model as `tl.onnx.load` does, and compare its results for the example with those of the program.

        Equal infinities and NaN in the same places do not differ.

        Raises: NumericError if they differ by more than the tolerance, relative to the largest finite result
        """
        file = io.BytesIO()
        self.save(file)
        program = self.exported_program
        args, kwargs = program.example_inputs or ((), {})
        with no_grad():
            expected = _tensors(program.module()(*args, **kwargs))
            got = _tensors(load(file.getvalue())(*self._arguments))
        for place, (x, y) in enumerate(zip(got, expected, strict=True)):
            if x.shape != y.shape:
                raise NumericError(f"onnx.export: output {place} of the file is {tuple(x.shape)}, not {tuple(y.shape)}")
            x, y = x.double(), y.double()
            finite = y[y.isfinite()].abs()
            limit = tolerance * max(1.0, float(finite.max()) if finite.numel() else 0.0)
            if not allclose(x, y, rtol=0.0, atol=limit, equal_nan=True):
                raise NumericError(
                    f"onnx.export: output {place} of the file differs by {float((x - y).abs().max()):.3g}"
                )


def _tensors(value: Any) -> list[Tensor]:
    """Return the tensors of a result in order."""
    if isinstance(value, Tensor):
        return [value]
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ()
    return [x for part in parts for x in _tensors(part)]


def _copied(message: Any, **changes: Any) -> Any:
    fields = {name: getattr(message, name) for name in message.__slots__}
    return type(message)(**(fields | changes))


def _size(tensor: TensorProto) -> int:
    return 0 if tensor.raw_data is None else len(tensor.raw_data)


def _outside(tensors: Sequence[TensorProto], path: Path) -> list[TensorProto]:
    """Write the larger tensors to a file, and return all as the model has them."""
    if all(_size(tensor) < SMALLEST for tensor in tensors):
        return list(tensors)
    found: list[TensorProto] = []
    offset = 0
    with atomic_write(path) as file:
        for tensor in tensors:
            size = _size(tensor)
            if size < SMALLEST or tensor.raw_data is None:
                found.append(tensor)
                continue
            file.write(b"\0" * (-offset % ALIGNMENT))
            offset += -offset % ALIGNMENT
            file.write(tensor.raw_data)
            place = external_place(path.name, offset, size)
            found.append(_copied(tensor, raw_data=None, external_data=place, data_location=EXTERNAL))
            offset += size
    return found


def _declaration(name: str, data_type: int, dims: Sequence[int | str | None]) -> ValueInfoProto:
    """Return the name and the type of a tensor; a size that varies has a name, or none."""
    shape = [Dimension(dim_value=n) if isinstance(n, int) else Dimension(dim_param=n or "") for n in dims]
    return ValueInfoProto(name, TypeProto(TensorType(data_type, TensorShapeProto(shape))))


class _Messages:
    """The messages of a conversion, with the names that inputs and outputs get."""

    def __init__(
        self, conversion: Conversion, input_names: Sequence[str] | None, output_names: Sequence[str] | None, axes: Axes
    ) -> None:
        self.conversion, self.g, self.axes = conversion, conversion.g, axes
        self.results = self._results()
        wanted = self._named_inputs(list(input_names or ()))
        self.outputs = self._named_outputs(list(output_names or ()), wanted)
        self.names = self._names(wanted)  # of values -> in the file
        known = {self._name(value.name) for value in (*self.outputs, *conversion.inputs)}
        known |= {value.name for value in conversion.inputs}
        if unknown := [name for name in axes if name not in known]:
            raise ArgumentError(f"onnx.export: dynamic_axes: no input or output is called {unknown[0]!r:.80}")

    def _results(self) -> list[tuple[str, Value]]:
        """Return the results that are tensors, each with the name of its node."""
        specs = self.conversion.program.graph_signature.output_specs
        if written := [s.target for s in specs if s.kind is OutputKind.BUFFER_MUTATION]:
            raise UnsupportedError(
                f"onnx.export: the module writes to {', '.join(map(str, written))}; a file has no state",
                hint="export in evaluation mode, or return the new values",
            )
        found = [
            (s.arg.name, x)
            for s, x in zip(specs, self.conversion.outputs, strict=True)
            if s.kind is OutputKind.USER_OUTPUT and isinstance(x, Value)
        ]
        if not found:
            raise ArgumentError("onnx.export: the module returns no tensor")
        return found

    def _named_inputs(self, given: list[str]) -> dict[str, str]:
        inputs = self.conversion.inputs
        if len(given) > len(inputs):
            raise ArgumentError(f"onnx.export: {len(given)} input_names for {len(inputs)} inputs")
        return {value.name: name for value, name in zip(inputs, given, strict=False)}

    def _named_outputs(self, given: list[str], wanted: dict[str, str]) -> list[Value]:
        """Return the outputs, and add their names. One that is no output of a node, or is two outputs, gets a copy."""
        if len(given) > len(self.results):
            raise ArgumentError(f"onnx.export: {len(given)} output_names for {len(self.results)} outputs")
        computed = {name for call in self.g.calls for name in call.outputs}
        used: set[str] = set()
        outputs: list[Value] = []
        for _, value in self.results:
            if value.name not in computed or value.name in used:
                value = self.g.op("Identity", value)
            used.add(value.name)
            outputs.append(value)
        wanted |= {value.name: name for value, name in zip(outputs, given, strict=False)}
        return outputs

    def _names(self, wanted: dict[str, str]) -> dict[str, str]:
        """Return the names that were asked for, and new ones for values in between that had these.

        Raises: ArgumentError for two inputs or outputs of one name
        """
        given = set(wanted.values())
        clashes = {name for name in given if name in self.g.taken and name not in wanted}
        if len(given) < len(wanted) or clashes & {value.name for value in self.conversion.inputs}:
            raise ArgumentError(f"onnx.export: two inputs or outputs have one name: {[*wanted.values()]!s:.200}")
        self.g.taken |= given
        return wanted | {name: self.g.unique(name) for name in sorted(clashes)}

    # ----------------------------------------------------------------------------------------------------- messages

    def model(self) -> ModelProto:
        """Return the message of the file."""
        opset, g = self.g.opset, self.g
        domains = [OperatorSetIdProto("", opset), *(OperatorSetIdProto(d, v) for d, v in g.domains.items())]
        return ModelProto(
            ir_version=IR_VERSIONS[opset], producer_name="tallow", producer_version=tallow.__version__,
            graph=self._graph(), opset_import=domains,
        )  # fmt: skip

    def _graph(self) -> GraphProto:
        outputs = {value.name for value in self.outputs}
        calls, stored = laid_out(self._used(outputs), self.g.initializers, outputs, self.g.unique)
        needed = {name for call in calls for name in call.inputs}
        weights = [value for value in stored.values() if value.name in needed]
        for value in weights:
            if value.source is not None and value.source not in needed:
                needed.add(value.source)
                self.names[value.name] = self._name(value.source)
        return GraphProto(
            node=[self._node(call) for call in calls], name=type(self.conversion.program.graph_module).__name__,
            initializer=[tensor_proto(wrap(v.array), self._name(v.name)) for v in weights],
            input=[
                _declaration(self._name(v.name), DATA_TYPES[v.dtype], self._dims(self._name(v.name), v.name, 0))
                for v in self.conversion.inputs
            ],
            output=[
                self._output(self._name(value.name), node, known)
                for value, (node, known) in zip(self.outputs, self.results, strict=True)
            ],
        )  # fmt: skip

    def _output(self, name: str, node: str, value: Value) -> ValueInfoProto:
        if node in self.conversion.known and self.conversion.known[node].tensors:
            return _declaration(name, DATA_TYPES[value.dtype], self._dims(name, node, 0))
        return _declaration(name, DATA_TYPES[value.dtype], value.shape or ())

    def _dims(self, name: str, node: str, place: int) -> list[int | str]:
        """Return the sizes of an input or output; one that varies has the name of its Dim, or one of its own."""
        known = self.conversion.known[node]
        _, shape = known.tensors[place]
        own = places_of(self.axes, name, len(shape))
        names: list[int | str] = []
        for dim, size in enumerate(shape):
            if size is not None:
                names.append(size)
            else:
                pair = known.sizes[place][dim]
                names.append(own.get(dim) or self.conversion.dims.get(pair) or f"{name}_dim_{dim}")
        return names

    def _used(self, outputs: Collection[str]) -> list[Call]:
        """Return the nodes that outputs depend on, in order."""
        needed = set(outputs)
        found: list[Call] = []
        for call in reversed(self.g.calls):
            if needed.intersection(call.outputs):
                found.append(call)
                needed.update(call.inputs)
        return found[::-1]

    def _name(self, name: str) -> str:
        return self.names.get(name, name)

    def _node(self, call: Call) -> NodeProto:
        return NodeProto(
            input=[self._name(n) for n in call.inputs], output=[self._name(n) for n in call.outputs], name=call.name,
            op_type=call.op_type, domain=call.domain,
            attribute=[_attribute(key, value) for key, value in call.attributes.items()],
        )  # fmt: skip


def _attribute(name: str, value: Any) -> AttributeProto:
    """Return an attribute, whose kind follows from its class."""
    if isinstance(value, dtypes.dtype):
        return AttributeProto(name=name, i=int(DATA_TYPES[value]), type=AttributeType.INT)
    if isinstance(value, bool | int | np.integer):
        return AttributeProto(name=name, i=int(value), type=AttributeType.INT)
    if isinstance(value, float):
        return AttributeProto(name=name, f=value, type=AttributeType.FLOAT)
    if isinstance(value, str):
        return AttributeProto(name=name, s=value.encode(), type=AttributeType.STRING)
    if isinstance(value, Tensor):
        return AttributeProto(name=name, t=tensor_proto(value, ""), type=AttributeType.TENSOR)
    values: list[Any] = list(value)
    if any(isinstance(x, float) for x in values):
        return AttributeProto(name=name, floats=[float(x) for x in values], type=AttributeType.FLOATS)
    if values and isinstance(values[0], str):
        return AttributeProto(name=name, strings=[x.encode() for x in values], type=AttributeType.STRINGS)
    return AttributeProto(name=name, ints=[int(x) for x in values], type=AttributeType.INTS)
