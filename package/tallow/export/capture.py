"""`export`: run a module once and return what it did as an ExportedProgram."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np

from tallow.core.tensor import Tensor, wrap
from tallow.errors import ArgumentError, ArgumentTypeError, TallowError, TraceError, UnsupportedError
from tallow.export.dims import Declared, resized
from tallow.export.merging import merge_equal
from tallow.export.patches import recorded_tensors
from tallow.export.program import Check, ExportedProgram, is_same
from tallow.export.recorder import Recorder
from tallow.export.signature import (
    ConstantArgument,
    ExportGraphSignature,
    InputKind,
    InputSpec,
    OutputKind,
    OutputSpec,
    SymIntArgument,
    TensorArgument,
)
from tallow.export.sizes import Symbolic, first_of
from tallow.export.state import State
from tallow.export.targets import CLONE
from tallow.export.trees import Leaf, Spec, flatten, unflatten
from tallow.fx.graph import Graph
from tallow.fx.node import Node
from tallow.nn.module import Module
from tallow.tape.modes import enable_grad, mode, no_grad
from tallow.tape.writes import owner_of

STARS: dict[Any, str] = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}

RUNS = threading.RLock()  # Tensor has other methods during an export; each thread waits for the others to end
UNSEEN = "the module reads what the recorder does not see, such as a size in range() or in NumPy"


def export(
    mod: Module,
    args: tuple[Any, ...],
    kwargs: dict[str, Any] | None = None,
    *,
    dynamic_shapes: Any = None,
    strict: bool = False,
    preserve_module_call_signature: tuple[str, ...] = (),
) -> ExportedProgram:
    """Run a module once on example arguments and return what it computed as a graph of ops.

    In-place writes and views become functional; new values of buffers and arguments are outputs. Parameters, buffers
    and constants are inputs. The module, its buffers, the arguments and the random numbers stay as they are.

    Then the graph runs, also at two other sizes if one is declared to vary, and is compared with the module.

    Args:
        dynamic_shapes: the sizes that may vary, by argument: a dict of names or a sequence, with a dict `{dim: Dim}`, a
            sequence or None for each tensor. All others are fixed to those of the example.
        strict: has no effect.
        preserve_module_call_signature: must be empty.

    Raises:
        TraceError: the program decides by a value that is not known, fixes a size that is declared to vary, or does
            what a graph cannot hold; it names the line.
        ArgumentError, ArgumentTypeError: `mod` is no module, or `dynamic_shapes` does not fit the arguments.
        UnsupportedError: arguments or results that are not tensors, numbers, strings and None in tuples, lists, dicts.
    """
    if not isinstance(mod, Module):
        raise ArgumentError(f"export: expected a Module, got {type(mod).__name__}", hint="put the function in one")
    if not isinstance(args, tuple):
        raise ArgumentTypeError(f"export: args must be a tuple, not {type(args).__name__}", hint="export(m, (x,))")
    if preserve_module_call_signature:
        raise UnsupportedError("export: calls of submodules are not kept", hint="leave it out")
    if mode.tracer is not None:
        raise TraceError("export: another export or compilation is running")
    with RUNS:
        return _Export(mod, args, kwargs or {}, dynamic_shapes).run()


class _Export:
    """One export."""

    def __init__(self, mod: Module, args: tuple[Any, ...], kwargs: dict[str, Any], dynamic_shapes: Any) -> None:
        self.mod, self.args, self.kwargs = mod, args, kwargs
        self.graph, self.signature, self.declared = Graph(), ExportGraphSignature(), Declared()
        self.constants: dict[str, Tensor] = {}
        self.state = State(mod)
        self.checks: list[Check] = []
        self.bound = bound_arguments(mod, args, kwargs)
        self.leaves: list[tuple[str, Any]] = []
        self.inputs: dict[str, Spec] = {
            STARS.get(self.bound.signature.parameters[name].kind, "") + name: flatten(
                value, name, self.leaves, "argument"
            )
            for name, value in self.bound.arguments.items()
        }
        declared = by_leaf(self.inputs, dynamic_shapes, len(self.leaves))
        self.dims = [
            self.declared.shape_of(path, leaf, entry) if isinstance(leaf, Tensor) else ()
            for (path, leaf), entry in zip(self.leaves, declared, strict=True)
        ]
        self.varies = bool(self.declared.sizes)
        self.recorder = Recorder(self.graph, self.varies, self._add_constant)
        self._first_user: Node | None = None
        self._attributes = {id(value.array): name for name, value in _tensor_attributes(mod)}

    def run(self) -> ExportedProgram:
        """Record, compare and return the program."""
        try:
            self._add_state()
            arguments = self._add_arguments()
            self.recorder.start()
            with recorded_tensors(self.recorder), enable_grad():
                mode.tracer = self.recorder
                try:
                    bound = filled(self.bound, self.inputs, arguments)
                    result = self.mod(*bound.args, **bound.kwargs)
                    self.recorder.check_writes()
                    found: list[tuple[str, Any]] = []
                    spec = flatten(result, "result", found, "result")
                    self._add_outputs([value for _, value in found])
                finally:
                    mode.tracer = None
            after = self.state.values()
            self.state.restore()
            program = self._program(spec)
            self._compare(program, [first_of(value) for _, value in found], after)
        finally:
            self.state.restore()
        return program

    # ------------------------------------------------------------------------------------------------------- inputs

    def _add_state(self) -> None:
        """Make the parameters and buffers inputs."""
        persistent = self.mod.state_dict().keys()
        for kind, letter, named in (
            (InputKind.PARAMETER, "p", self.mod.named_parameters()),
            (InputKind.BUFFER, "b", self.mod.named_buffers()),
        ):
            for name, tensor in named:
                node = self.graph.placeholder(f"{letter}_{name.replace('.', '_')}")
                node.target = node.name
                second = None
                if self.varies:
                    second = wrap(tensor.array.copy() if kind is InputKind.BUFFER else tensor.array)
                is_tracked = kind is InputKind.PARAMETER and tensor.dtype.is_floating_point
                self.recorder.add(tensor, node, second, is_tracked=is_tracked)
                is_persistent = name in persistent if kind is InputKind.BUFFER else None
                self.signature.input_specs.append(InputSpec(kind, TensorArgument(node.name), name, is_persistent))

    def _add_arguments(self) -> list[Any]:
        """Make the arguments inputs, and return copies of them."""
        copies: list[Any] = []
        for (path, leaf), names in zip(self.leaves, self.dims, strict=True):
            node = self.graph.placeholder(path)
            node.target = node.name
            self._first_user = self._first_user or node
            if not isinstance(leaf, Tensor):
                copies.append(leaf)
                self.signature.input_specs.append(InputSpec(InputKind.USER_INPUT, ConstantArgument(node.name, leaf)))
                continue
            copies.append(wrap(leaf.array.copy(order="K")))
            sizes = {name: second for name, (_, second) in self.declared.sizes.items()}
            second = resized(leaf, names, sizes) if self.varies else None
            self.recorder.add(copies[-1], node, second, is_tracked=leaf.dtype.is_floating_point)
            self.signature.input_specs.append(InputSpec(InputKind.USER_INPUT, TensorArgument(node.name)))
            shape = tuple(size if name is None else name for size, name in zip(leaf.array.shape, names, strict=True))
            self.checks.append((path, leaf.dtype.name, shape))
        return copies

    def _add_constant(self, tensor: Tensor) -> Node:
        """Make a tensor that existed before the run an input."""
        name = self._attributes.get(id(tensor.array), f"lifted_tensor_{len(self.constants)}")
        self.constants[name] = tensor
        place = self._first_user if self._first_user is not None else next(iter(self.graph.nodes), None)
        with self.graph.inserting_before(place):
            node = self.graph.placeholder(f"c_{name.replace('.', '_')}")
        node.target = node.name
        specs = self.signature.input_specs
        at = next((i for i, s in enumerate(specs) if s.kind is InputKind.USER_INPUT), len(specs))
        specs.insert(at, InputSpec(InputKind.CONSTANT_TENSOR, TensorArgument(node.name), name))
        return node

    # ------------------------------------------------------------------------------------------------------ outputs

    def _add_outputs(self, results: list[Any]) -> None:
        """Make new values of buffers and arguments, and the results, outputs."""
        recorder, values = self.recorder, list(self.recorder.values.values())
        specs = {s.arg.name: s for s in self.signature.input_specs}
        nodes: list[Any] = []
        by_input = {value.input: value for value in values if value.input is not None}
        replaced = self.state.replaced()
        if lost := self.state.changed_attributes() & self.constants.keys():
            raise TraceError(f"export: the module assigns {min(lost)} anew", hint="make it a buffer")
        for name, spec in specs.items():
            if spec.kind is InputKind.BUFFER and spec.target in replaced:
                node = self._assigned(str(spec.target), replaced[str(spec.target)])
                self.signature.output_specs.append(
                    OutputSpec(OutputKind.BUFFER_MUTATION, TensorArgument(node.name), spec.target)
                )
                nodes.append(node)
                continue
            value = by_input.get(name)
            if value is None or not value.base.version:
                continue
            if spec.kind in (InputKind.PARAMETER, InputKind.CONSTANT_TENSOR):
                raise TraceError(f"export: the module writes to {spec.target}", hint="make it a buffer")
            is_buffer = spec.kind is InputKind.BUFFER
            if not is_buffer:
                self._check_written(name)
            node = recorder.read(value)
            kind = OutputKind.BUFFER_MUTATION if is_buffer else OutputKind.USER_INPUT_MUTATION
            target = spec.target if is_buffer else name
            self.signature.output_specs.append(OutputSpec(kind, TensorArgument(node.name), target))
            nodes.append(node)
        for x in results:
            argument: Any = ConstantArgument("", x)
            if isinstance(x, Tensor):
                x = recorder.argument(x)
                argument = TensorArgument(x.name)
            elif isinstance(x, Symbolic):
                x = x.node()
                argument = SymIntArgument(x.name)
            self.signature.output_specs.append(OutputSpec(OutputKind.USER_OUTPUT, argument))
            nodes.append(x)
        self.graph.output(tuple(nodes))
        merge_equal(self.graph)
        self.graph.eliminate_dead_code()

    def _check_written(self, name: str) -> None:
        """Raise TraceError if an argument that the module writes to shares memory with another."""
        users = [s for s in self.signature.input_specs if s.kind is InputKind.USER_INPUT]
        arrays = {
            s.arg.name: leaf.array for s, (_, leaf) in zip(users, self.leaves, strict=True) if isinstance(leaf, Tensor)
        }
        owner = owner_of(arrays[name])
        for other, array in arrays.items():
            if other != name and owner_of(array) is owner:
                raise TraceError(
                    f"export: the module writes to {name}, which shares its memory with {other}",
                    hint="pass a copy: x.clone()",
                )

    def _assigned(self, name: str, tensor: Tensor) -> Node:
        """Return the node of a tensor that a buffer was assigned.  Raises: TraceError if its shape varies"""
        value = self.recorder.value_of(tensor.array)
        if value.second is not None and value.second.array.shape != value.array.shape:
            raise TraceError(f"export: the buffer {name} is assigned a tensor whose shape varies")
        node = self.recorder.read(value)
        return node if value.base.input is None else self.graph.call_function(CLONE, (node,))

    def _program(self, result: Spec) -> ExportedProgram:
        state = dict(self.mod.state_dict(keep_vars=True))
        for name, parameter in self.mod.named_parameters(remove_duplicate=False):
            state.setdefault(name, parameter)
        buffers = dict(self.mod.named_buffers(remove_duplicate=False))
        constants = {name: buffer for name, buffer in buffers.items() if name not in state} | self.constants
        return ExportedProgram(
            self.graph,
            self.signature,
            state,
            constants,
            self.checks,
            dict(self.declared.ranges),
            self.inputs,
            result,
            self.mod.training,
            (self.args, self.kwargs),
        )

    # --------------------------------------------------------------------------------------------------- comparison

    def _compare(self, program: ExportedProgram, results: list[Any], buffers: dict[str, Any]) -> None:
        """Compare the program with the module.  Raises: TraceError if they differ"""
        copies = [wrap(leaf.array.copy()) if isinstance(leaf, Tensor) else leaf for _, leaf in self.leaves]
        self._check(self._outputs_of(program, copies), results, buffers, "")
        self.state.restore()
        for sizes in ({name: second for name, (_, second) in self.declared.sizes.items()}, self.declared.thirds):
            if any(sizes[name] != first for name, (first, _) in self.declared.sizes.items()):
                self._compare_at(program, sizes)

    def _compare_at(self, program: ExportedProgram, sizes: dict[str, int]) -> None:
        """Compare the program with the module at other sizes.

        At the third sizes, which no op has seen, both may refuse them: the module in any way, the program by a check.
        """
        leaves = [
            resized(leaf, names, sizes) if isinstance(leaf, Tensor) else leaf
            for (_, leaf), names in zip(self.leaves, self.dims, strict=True)
        ]
        is_third = sizes is self.declared.thirds
        bound = filled(self.bound, self.inputs, [_copied(x) for x in leaves])
        found: list[tuple[str, Any]] = []
        try:
            with no_grad():
                flatten(self.mod(*bound.args, **bound.kwargs), "result", found, "result")
        except Exception:
            if is_third:
                return
            raise
        buffers = self.state.values()
        self.state.restore()
        where = " at " + ", ".join(f"{name} = {size}" for name, size in sizes.items())
        try:
            got = self._outputs_of(program, leaves)
        except TraceError:  # of check_size
            if is_third:
                return
            raise
        except TallowError as error:
            reason = str(error).partition("\n")[0]
            raise TraceError(
                f"export: the graph cannot run{where}, as the module does: {reason}", hint=UNSEEN
            ) from error
        self._check(got, [x for _, x in found], buffers, where)
        self.state.restore()

    def _outputs_of(self, program: ExportedProgram, leaves: list[Any]) -> list[Any]:
        bound = filled(self.bound, self.inputs, leaves)
        with no_grad():
            result = program.module()(*bound.args, **bound.kwargs)
        found: list[tuple[str, Any]] = []
        flatten(result, "result", found, "result")
        return [x for _, x in found]

    def _check(self, got: list[Any], expected: list[Any], buffers: dict[str, Any], where: str) -> None:
        if len(got) != len(expected):
            raise TraceError(
                f"export: the graph has {len(got)} results, and the module {len(expected)}{where}", hint=UNSEEN
            )
        pairs = [(f"result {i}", x, y) for i, (x, y) in enumerate(zip(got, expected, strict=True))]
        pairs += [(name, x, wrap(buffers[name])) for name, x in self.mod.named_buffers()]
        for name, x, y in pairs:
            if not _agree(x, y):
                raise TraceError(
                    f"export: the graph computes another {name} than the module{where}",
                    hint=UNSEEN,
                )


def bound_arguments(mod: Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> inspect.BoundArguments:
    """Return arguments by the names of `forward`.  Raises: ArgumentTypeError if they do not fit"""
    try:
        return inspect.signature(mod.forward).bind(*args, **kwargs)
    except TypeError as error:
        raise ArgumentTypeError(f"export: {type(mod).__name__}.forward: {error}") from error


def filled(bound: inspect.BoundArguments, inputs: dict[str, Spec], leaves: list[Any]) -> inspect.BoundArguments:
    """Return arguments with other leaves."""
    values = {name.lstrip("*"): unflatten(spec, leaves.__getitem__) for name, spec in inputs.items()}
    return inspect.BoundArguments(bound.signature, values)


def _copied(x: Any) -> Any:
    return wrap(x.array.copy()) if isinstance(x, Tensor) else x


def _agree(x: Any, y: Any) -> bool:
    """Return whether two results are the same, up to rounding."""
    if not isinstance(x, Tensor) or not isinstance(y, Tensor):
        return type(x) is type(y) and is_same(x, y)
    if x.shape != y.shape or x.dtype is not y.dtype:
        return False
    a, b = x.detach()._host(), y.detach()._host()
    return bool(np.allclose(a, b, rtol=1e-3, atol=1e-5, equal_nan=True))


def by_leaf(inputs: dict[str, Spec], declared: Any, count: int) -> list[Any]:
    """Return what `dynamic_shapes` declares for each leaf."""
    found: list[Any] = [None] * count

    def walk(spec: Spec, entry: Any, path: str) -> None:
        if entry is None:
            return
        if isinstance(spec, Leaf):
            found[spec.index] = entry
            return
        keys = spec.keys or tuple(range(len(spec.parts)))
        if isinstance(entry, dict):
            if not set(entry) <= set(keys):
                raise ArgumentError(f"dynamic_shapes: {path} has {list(keys)}, not {sorted(set(entry) - set(keys))}")
            pairs = [(key, entry.get(key)) for key in keys]
        elif isinstance(entry, list | tuple) and len(entry) == len(keys):
            pairs = list(zip(keys, entry, strict=True))
        else:
            raise ArgumentError(f"dynamic_shapes: {path} has {len(keys)} parts, but {entry!r:.80} is declared")
        for part, (key, value) in zip(spec.parts, pairs, strict=True):
            walk(part, value, f"{path}[{key!r}]")

    if declared is None:
        return found
    inputs = {name.lstrip("*"): spec for name, spec in inputs.items()}
    names = list(inputs)
    if isinstance(declared, dict):
        if unknown := [name for name in declared if name not in inputs]:
            raise ArgumentError(f"dynamic_shapes: no argument is called {unknown[0]!r}", hint=f"there are {names}")
        pairs = list(declared.items())
    elif isinstance(declared, list | tuple) and len(declared) == len(names):
        pairs = list(zip(names, declared, strict=True))
    else:
        raise ArgumentError(f"dynamic_shapes: expected an entry for each of {names}, got {declared!r:.80}")
    for name, entry in pairs:
        walk(inputs[name], entry, name)
    return found


def _tensor_attributes(mod: Module) -> Iterator[tuple[str, Tensor]]:
    """Yield the tensors that modules have as ordinary attributes, with their paths."""
    for path, module in mod.named_modules():
        for name, value in vars(module).items():
            if isinstance(value, Tensor):
                yield f"{path}.{name}" if path else name, value
