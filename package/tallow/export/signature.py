"""Descriptions of the inputs and outputs of an exported graph, with the names of torch.export."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum, auto


class InputKind(Enum):
    """The kinds of inputs of the graph."""

    USER_INPUT = auto()
    PARAMETER = auto()
    BUFFER = auto()
    CONSTANT_TENSOR = auto()


class OutputKind(Enum):
    """The kinds of outputs of the graph: results, and new values of buffers and arguments."""

    USER_OUTPUT = auto()
    BUFFER_MUTATION = auto()
    USER_INPUT_MUTATION = auto()


@dataclass(frozen=True)
class TensorArgument:
    """A node whose value is a tensor."""

    name: str


@dataclass(frozen=True)
class SymIntArgument:
    """A node whose value is a number."""

    name: str


@dataclass(frozen=True)
class ConstantArgument:
    """A value that is the same in every call."""

    name: str
    value: int | float | str | bool | None


Argument = TensorArgument | SymIntArgument | ConstantArgument


@dataclass
class InputSpec:
    """An input.

    Attributes:
        target: the name of the parameter, buffer or constant.
        persistent: of a buffer: whether it is part of `state_dict`.
    """

    kind: InputKind
    arg: Argument
    target: str | None = None
    persistent: bool | None = None


@dataclass
class OutputSpec:
    """An output.  Attributes: target - the buffer or the argument that gets the value"""

    kind: OutputKind
    arg: Argument
    target: str | None = None


@dataclass
class ExportGraphSignature:
    """The inputs and outputs of a graph, in order.

    The inputs are parameters, buffers, constants and arguments; the outputs are new values of buffers and arguments,
    and results.
    """

    input_specs: list[InputSpec] = field(default_factory=list)
    output_specs: list[OutputSpec] = field(default_factory=list)

    def _targets(self, kind: InputKind) -> Iterator[tuple[str, str]]:
        return ((s.arg.name, s.target) for s in self.input_specs if s.kind is kind and s.target is not None)

    @property
    def inputs_to_parameters(self) -> dict[str, str]:
        """Name of an input -> name of the parameter."""
        return dict(self._targets(InputKind.PARAMETER))

    @property
    def inputs_to_buffers(self) -> dict[str, str]:
        """Name of an input -> name of the buffer."""
        return dict(self._targets(InputKind.BUFFER))

    @property
    def inputs_to_lifted_tensor_constants(self) -> dict[str, str]:
        """Name of an input -> name of the constant."""
        return dict(self._targets(InputKind.CONSTANT_TENSOR))

    @property
    def parameters(self) -> tuple[str, ...]:
        """The names of the parameters."""
        return tuple(self.inputs_to_parameters.values())

    @property
    def buffers(self) -> tuple[str, ...]:
        """The names of the buffers."""
        return tuple(self.inputs_to_buffers.values())

    @property
    def non_persistent_buffers(self) -> tuple[str, ...]:
        """The names of the buffers that are not part of `state_dict`."""
        return tuple(s.target for s in self.input_specs if s.persistent is False and s.target is not None)

    @property
    def lifted_tensor_constants(self) -> tuple[str, ...]:
        """The names of the constants."""
        return tuple(self.inputs_to_lifted_tensor_constants.values())

    @property
    def user_inputs(self) -> tuple[object, ...]:
        """The names of the arguments; the value of one that is constant."""
        return tuple(_user(s.arg) for s in self.input_specs if s.kind is InputKind.USER_INPUT)

    @property
    def user_outputs(self) -> tuple[object, ...]:
        """The names of the results; the value of one that is constant."""
        return tuple(_user(s.arg) for s in self.output_specs if s.kind is OutputKind.USER_OUTPUT)

    @property
    def buffers_to_mutate(self) -> dict[str, str]:
        """Name of an output -> name of the buffer that gets its value."""
        return self._mutations(OutputKind.BUFFER_MUTATION)

    @property
    def user_inputs_to_mutate(self) -> dict[str, str]:
        """Name of an output -> name of the argument that gets its value."""
        return self._mutations(OutputKind.USER_INPUT_MUTATION)

    def _mutations(self, kind: OutputKind) -> dict[str, str]:
        return {s.arg.name: s.target for s in self.output_specs if s.kind is kind and s.target is not None}


def _user(arg: Argument) -> object:
    return arg.value if isinstance(arg, ConstantArgument) else arg.name
