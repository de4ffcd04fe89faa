"""ExportedProgram: a graph of ops, the tensors it needs, and what its inputs and outputs are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tallow.core.tensor import Tensor
from tallow.errors import ArgumentError, DtypeError, ShapeError
from tallow.export.dims import Range
from tallow.export.signature import (
    ConstantArgument,
    ExportGraphSignature,
    InputKind,
    OutputKind,
    TensorArgument,
)
from tallow.export.trees import Spec, take_apart, unflatten
from tallow.fx.graph import Graph
from tallow.fx.graph_module import GraphModule
from tallow.fx.node import Node
from tallow.fx.patching import has_side_effect
from tallow.nn.module import Module
from tallow.nn.parameter import Buffer, Parameter

Check = tuple[str, str, tuple[int | str, ...]]  # path of a tensor, name of its dtype, its sizes or names of Dims


class ExportedProgram:
    """A program as a graph; see `tallow.export.export`.

    Attributes:
        graph_module: the graph as a module. Its inputs are parameters, buffers, constants and arguments, flat; its
            outputs new values of buffers and arguments, and results.
        graph_signature: what these are.
        state_dict: name -> parameter or buffer, as in the exported module.
        constants: name -> tensor that the program reads, but that is no parameter and in no `state_dict`.
        range_constraints: name of a Dim -> the sizes that it may have.
        example_inputs: the arguments of the export, (args, kwargs); None after `load`.
    """

    def __init__(
        self,
        graph: Graph,
        graph_signature: ExportGraphSignature,
        state_dict: dict[str, Tensor],
        constants: dict[str, Tensor],
        checks: list[Check],
        ranges: dict[str, Range],
        inputs: dict[str, Spec],
        result: Spec,
        training: bool,
        example_inputs: tuple[tuple[Any, ...], dict[str, Any]] | None = None,
    ) -> None:
        self.graph_module = GraphModule(Module(), graph, "ExportedGraph")
        self.graph_module.training = training
        self.graph_signature = graph_signature
        self.state_dict, self.constants = state_dict, constants
        self.range_constraints = ranges
        self.example_inputs = example_inputs
        self._checks, self._inputs, self._result = checks, inputs, result

    @property
    def graph(self) -> Graph:
        """The graph."""
        return self.graph_module.graph

    def parameters(self) -> Iterator[Parameter]:
        """Yield the parameters."""
        return (parameter for _, parameter in self.named_parameters())

    def named_parameters(self) -> Iterator[tuple[str, Any]]:
        """Yield the parameters with their names."""
        return ((name, self.state_dict[name]) for name in self.graph_signature.parameters)

    def buffers(self) -> Iterator[Tensor]:
        """Yield the buffers."""
        return (buffer for _, buffer in self.named_buffers())

    def named_buffers(self) -> Iterator[tuple[str, Tensor]]:
        """Yield the buffers with their names, also those that are not part of `state_dict`."""
        return ((name, self.tensor(name)) for name in self.graph_signature.buffers)

    def tensor(self, name: str) -> Tensor:
        """Return the parameter, buffer or constant with a name."""
        return self.state_dict[name] if name in self.state_dict else self.constants[name]

    def module(self) -> GraphModule:
        """Return the program as a module with the parameters and buffers of the exported one, which they share.

        Its arguments are those of the export; others sizes are refused where no Dim is declared. It computes with ops,
        so it can be trained. Its mode, training or evaluation, is that of the export.
        """
        return _unlifted(self)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise ArgumentError("an ExportedProgram cannot be called", hint="call its module: program.module()(...)")

    def __str__(self) -> str:
        code = self.graph_module.print_readable(print_output=False).replace("\n", "\n    ")
        both: list[Any] = [*self.graph_signature.input_specs, *self.graph_signature.output_specs]
        specs = [
            f"{s.arg.name}: {s.kind.name}" + (f" target={s.target!r}" if s.target is not None else "") for s in both
        ]
        ranges = {name: str(sizes) for name, sizes in self.range_constraints.items()}
        signature = "\n".join(["Graph signature:", *(f"    {line}" for line in specs)])
        return f"ExportedProgram:\n    {code}\n{signature}\nRange constraints: {ranges}\n"


def _unlifted(program: ExportedProgram) -> GraphModule:
    """Return the module whose graph reads parameters as attributes, and writes new values to buffers."""
    graph, signature = Graph(), program.graph_signature
    leaves: dict[int, Node] = {}
    tops = [(graph.placeholder(name), spec) for name, spec in program._inputs.items()]
    for node, spec in tops:
        take_apart(graph, node, spec, leaves)
    specs = {s.arg.name: s for s in signature.input_specs}
    users = [s for s in signature.input_specs if s.kind is InputKind.USER_INPUT]
    if users:
        constants = tuple((s.arg.name, s.arg.value) for s in users if isinstance(s.arg, ConstantArgument))
        given = [leaves[i] for i, s in enumerate(users) if isinstance(s.arg, ConstantArgument)]
        tensors = [leaves[i] for i, s in enumerate(users) if isinstance(s.arg, TensorArgument)]
        ranges = {name: (r.lower, r.upper) for name, r in program.range_constraints.items()}
        graph.call_function(check_inputs, (tensors, tuple(program._checks), ranges))
        if constants:
            graph.call_function(check_constants, (given, constants))
    known = {s.arg.name: leaves[i] for i, s in enumerate(users)}
    nodes: dict[Node, Any] = {}
    for node in program.graph.nodes:
        if node.op == "placeholder":
            path = specs[node.name].target
            nodes[node] = known[node.name] if path is None else graph.get_attr(path)
        elif node.op != "output":
            nodes[node] = graph.node_copy(node, nodes.__getitem__)
    outputs = [nodes[x] if isinstance(x, Node) else x for x in _outputs(program.graph)]
    count = sum(s.kind is not OutputKind.USER_OUTPUT for s in signature.output_specs)
    mutated = {s.target for s in signature.output_specs[:count]}
    written = {nodes[n] for n in nodes if n.op == "placeholder" and {n.name, specs[n.name].target} & mutated}
    results = [graph.call_method("clone", (x,)) if isinstance(x, Node) and x in written else x for x in outputs[count:]]
    for spec_out, value in zip(signature.output_specs, outputs[:count], strict=False):
        is_buffer = spec_out.kind is OutputKind.BUFFER_MUTATION
        place = graph.get_attr(str(spec_out.target)) if is_buffer else known[str(spec_out.target)]
        graph.call_method("copy_", (place, value))
    graph.output(unflatten(program._result, results.__getitem__))
    graph.eliminate_dead_code()
    tensors_by_name: Mapping[str, Tensor] = {**program.constants, **program.state_dict}
    module = GraphModule(Module(), Graph(), "ExportedModule")
    for name, tensor in tensors_by_name.items():
        _assign(module, name, tensor, name in program.state_dict)
    module.training = program.graph_module.training
    for child in module.modules():
        child.training = module.training
    module.graph = graph
    return module


def _outputs(graph: Graph) -> tuple[Any, ...]:
    outputs: tuple[Any, ...] = graph.output_node().args[0]
    return outputs


def _assign(root: Module, path: str, tensor: Tensor, persistent: bool) -> None:
    """Give a module a tensor at a dotted path, with new modules on the way."""
    *parents, name = path.split(".")
    for parent in parents:
        if parent not in root._modules:
            root.add_module(parent, Module())
        root = root._modules[parent]  # type: ignore[assignment]
    if isinstance(tensor, Parameter) and not isinstance(tensor, Buffer):
        root.register_parameter(name, tensor)
    else:
        root.register_buffer(name, tensor, persistent=persistent)


@has_side_effect
def check_inputs(tensors: list[Tensor], checks: tuple[Check, ...], ranges: dict[str, tuple[int, int | None]]) -> None:
    """Check arguments against the export.

    Raises: DtypeError for another dtype, ShapeError for a size that was not exported.
    """
    sizes: dict[str, int] = {}
    for tensor, (path, dtype, shape) in zip(tensors, checks, strict=True):
        if not isinstance(tensor, Tensor):
            raise ArgumentError(f"{path} was a tensor in the export, and is a {type(tensor).__name__}")
        if tensor.dtype.name != dtype:
            raise DtypeError(f"{path} was {dtype} in the export, and is {tensor.dtype.name}")
        got = tuple(tensor.array.shape)
        if len(got) != len(shape):
            raise ShapeError(f"{path} had {len(shape)} dims in the export, and has shape {got}")
        for dim, (size, expected) in enumerate(zip(got, shape, strict=True)):
            if isinstance(expected, str):
                lower, upper = ranges[expected]
                if size not in Range(lower, upper):
                    raise ShapeError(f"{path} has size {size} at dim {dim}, but {expected} is {Range(lower, upper)}")
                if sizes.setdefault(expected, size) != size:
                    raise ShapeError(f"{path} has size {size} at dim {dim}, but {expected} is {sizes[expected]} before")
            elif size != expected:
                raise ShapeError(
                    f"{path} has size {size} at dim {dim}, but the export was made for {expected}",
                    hint="declare a Dim there with dynamic_shapes, and export again",
                )


def is_same(x: Any, y: Any) -> bool:
    """Return whether two numbers or strings are equal, or both NaN."""
    return bool(x == y) or (x != x and y != y)


@has_side_effect
def check_constants(values: list[Any], expected: tuple[tuple[str, Any], ...]) -> None:
    """Check arguments that are no tensors.  Raises: ArgumentError if one differs from the export"""
    for value, (path, constant) in zip(values, expected, strict=True):
        if type(value) is not type(constant) or not is_same(value, constant):
            raise ArgumentError(f"{path} was {constant!r} in the export, and is {value!r:.80}", hint="export again")
