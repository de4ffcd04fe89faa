"""Files of exported programs: safetensors, with the graph as JSON in the metadata.

    "__metadata__": {"tallow.export": a JSON object, "extra.NAME": text, ...}
    nodes       [name, function, args, kwargs] of each call, in order. Functions are named as in `allowed`.
    inputs      [kind, name, target, persistent, value]; outputs: [kind, target, value]
    checks, ranges, arguments, result, training    as in `ExportedProgram`
    tied        name -> the name of the tensor that it shares
    frozen      names of the parameters that require no gradient

Values are JSON's, except for {"node": name}, {"float": "inf"}, {"tuple": [...]}, {"dict": [[key, value], ...]},
{"slice": [start, stop, step]}, {"ellipsis": true}, {"dtype": name}, {"device": name} and {"memory_format": name}.

A file cannot run code of its own: it names functions from a list, and names and attributes are checked. What it names
may compute for long, and need much memory.
"""

from __future__ import annotations

import json
import math
import operator
import os
from collections import namedtuple
from collections.abc import Callable
from functools import cache
from keyword import iskeyword
from typing import IO, Any

import numpy as np

from tallow import devices, dtypes
from tallow.core.public_api import PUBLIC
from tallow.core.tensor import Tensor
from tallow.core.whole_calls import WHOLE
from tallow.errors import ArgumentTypeError, CheckpointError, TallowError, UnsupportedError
from tallow.export.dims import Range
from tallow.export.program import ExportedProgram
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
from tallow.export.sizes import check_size, sym_size
from tallow.export.targets import DETACH, op_target, public_by_code
from tallow.export.trees import LEAVES, Branch, Leaf, Spec
from tallow.fx.graph import Graph
from tallow.fx.names import qualified_name
from tallow.fx.node import Node
from tallow.io import safetensors
from tallow.io.json_object import parse_object
from tallow.nn.parameter import Parameter
from tallow.ops import memory_format as formats
from tallow.ops.table import OPS

KEY, EXTRA = "tallow.export", "extra."
VERSION = 1
MAX_DEPTH, MAX_COST, MAX_PARTS = 32, 20_000_000, 1000
ZIP = b"PK\x03\x04"
FORMATS = {name: getattr(formats, name) for name in ("contiguous_format", "preserve_format", "channels_last")}
FORMATS["channels_last_3d"] = formats.channels_last_3d
_OPERATORS = (
    "add sub mul truediv floordiv mod pow and_ or_ xor lshift rshift neg pos abs invert eq ne lt le gt ge getitem"
)
OPERATORS = tuple(getattr(operator, name) for name in _OPERATORS.split())
File = str | os.PathLike[str] | IO[bytes]


def save(ep: ExportedProgram, f: File, *, extra_files: dict[str, Any] | None = None) -> None:
    """Write a program to a file: its graph, parameters, buffers and constants.

    Args:
        f: a path, whose end is `.pt2` by habit, or a binary file.
        extra_files: name -> text to store beside.

    Raises: ArgumentTypeError, UnsupportedError for what a file cannot hold, such as a function of the program.
    """
    if not isinstance(ep, ExportedProgram):
        raise ArgumentTypeError(f"export.save: expected an ExportedProgram, got {type(ep).__name__}")
    tensors, tied = _distinct({**ep.constants, **ep.state_dict})
    metadata = {KEY: json.dumps(_description(ep, tied), allow_nan=False)}
    for name, text in (extra_files or {}).items():
        metadata[EXTRA + name] = text.decode() if isinstance(text, bytes) else str(text)
    if isinstance(f, str | os.PathLike):
        safetensors.save(tensors, f, metadata)
    else:
        f.writelines(safetensors.encode(tensors, metadata))


def load(f: File, *, extra_files: dict[str, Any] | None = None) -> ExportedProgram:
    """Read a program that `save` has written.

    Args:    extra_files: gets the texts that were stored, for the names that it has
    Raises:  CheckpointError for a file that is damaged or hostile; UnsupportedError for one of PyTorch, or of a later
             version
    """
    source: Any = f.read() if hasattr(f, "read") else f
    if _start_of(source) == ZIP:
        raise UnsupportedError(
            "export.load: this is an archive of PyTorch", hint="export the module with tallow and save it"
        )
    with safetensors.safe_open(source) as file:
        metadata, name = file.metadata(), file.name
        if KEY not in metadata:
            raise CheckpointError(f"{name} has tensors, but no graph", hint="read it with tl.load_checkpoint")
        tensors = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118 - not a dict
    for key in extra_files or {}:
        if EXTRA + key in metadata:
            extra_files[key] = metadata[EXTRA + key]  # type: ignore[index]
    found = parse_object(metadata[KEY].encode(), f"{name}: {KEY}", MAX_DEPTH, max_cost=MAX_COST)
    if found.get("version") != VERSION:
        raise UnsupportedError(f"{name} has version {found.get('version')!r:.20} of the format; this reads {VERSION}")
    try:
        return _Reader(found, tensors).program()
    except CheckpointError:
        raise
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, RecursionError, TallowError) as error:
        raise CheckpointError(f"{name}: the graph is malformed: {type(error).__name__}: {error}") from error


def _start_of(source: Any) -> bytes:
    if isinstance(source, str | os.PathLike):
        with open(source, "rb") as file:
            return file.read(len(ZIP))
    return bytes(source[: len(ZIP)])


def _distinct(named: dict[str, Tensor]) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Return the tensors by name, and name -> name of the same one before it."""
    first: dict[int, str] = {}
    tied = {name: first[id(t.array)] for name, t in named.items() if first.setdefault(id(t.array), name) != name}
    return {name: tensor.detach().cpu() for name, tensor in named.items() if name not in tied}, tied


@cache
def allowed() -> dict[str, Callable[..., Any]]:
    """Return the functions that a file may name: the ops of the table, those recorded as a whole, and operators."""
    ops = [op_target(op) for op in OPS.values() if op.function.__module__.startswith("tallow.")]
    public = public_by_code()
    whole = [public[code] for code in WHOLE if code in public]
    scatters = [PUBLIC["tl"][name] for name in ("select_scatter", "slice_scatter", "diagonal_scatter")]
    others = [DETACH, sym_size, check_size, math.floor, math.ceil, math.trunc, round, *OPERATORS]
    return {qualified_name(function): function for function in (*ops, *whole, *scatters, *others)}


# ------------------------------------------------------------------------------------------------------------ writing


def _description(ep: ExportedProgram, tied: dict[str, str]) -> dict[str, Any]:
    names = {id(function): name for name, function in allowed().items()}
    nodes = []
    for node in ep.graph.nodes:
        if node.op == "call_function":
            if id(node.target) not in names:
                raise UnsupportedError(
                    f"export.save: the graph calls {qualified_name(node.target)}, which is not one of tallow's ops",
                    hint="only ops of tallow can be saved; save the state_dict instead",
                )
            kwargs = {key: _encoded(x) for key, x in node.kwargs.items()}
            nodes.append([node.name, names[id(node.target)], [_encoded(x) for x in node.args], kwargs])
        elif node.op not in ("placeholder", "output"):
            raise UnsupportedError(f"export.save: a node {node.op}; the graph of an export has calls of functions only")
    signature = ep.graph_signature
    parameters = [name for name, x in ep.state_dict.items() if isinstance(x, Parameter)]
    return {
        "version": VERSION,
        "nodes": nodes,
        "inputs": [
            [s.kind.name, s.arg.name, s.target, s.persistent, _encoded(getattr(s.arg, "value", None))]
            for s in signature.input_specs
        ],
        "outputs": [[s.kind.name, s.target, _kind(s.arg)] for s in signature.output_specs],
        "values": [_encoded(x) for x in ep.graph.output_node().args[0]],
        "constants": [s.arg.name for s in signature.input_specs if isinstance(s.arg, ConstantArgument)],
        "checks": [[path, dtype, list(shape)] for path, dtype, shape in ep._checks],
        "ranges": {name: [r.lower, r.upper] for name, r in ep.range_constraints.items()},
        "arguments": [[name, _encoded_spec(spec)] for name, spec in ep._inputs.items()],
        "result": _encoded_spec(ep._result),
        "training": ep.graph_module.training,
        "state": list(ep.state_dict),
        "parameters": parameters,
        "frozen": [name for name in parameters if not ep.state_dict[name].requires_grad],
        "tied": tied,
    }


def _kind(arg: Any) -> str:
    return type(arg).__name__.removesuffix("Argument")


def _encoded(x: Any) -> Any:
    """Return a value as JSON has it."""
    if isinstance(x, Node):
        return {"node": x.name}
    if isinstance(x, float) and not np.isfinite(x):
        return {"float": repr(float(x))}
    if x is None or isinstance(x, bool | int | float | str):
        return x
    if isinstance(x, tuple):
        return {"tuple": [_encoded(part) for part in x]}
    if isinstance(x, list):
        return [_encoded(part) for part in x]
    if isinstance(x, dict):
        return {"dict": [[_encoded(key), _encoded(part)] for key, part in x.items()]}
    if isinstance(x, slice):
        return {"slice": [_encoded(part) for part in (x.start, x.stop, x.step)]}
    if x is Ellipsis:
        return {"ellipsis": True}
    if isinstance(x, dtypes.dtype):
        return {"dtype": x.name}
    if isinstance(x, devices.device):
        return {"device": str(x)}
    name = next((name for name, known in FORMATS.items() if known is x), None)
    if name is None:
        raise UnsupportedError(f"export.save: an argument is a {type(x).__name__}, which a file cannot hold")
    return {"memory_format": name}


def _encoded_spec(spec: Spec) -> Any:
    if isinstance(spec, Leaf):
        return spec.index
    parts = [_encoded_spec(part) for part in spec.parts]
    if spec.kind in (list, tuple):
        return [spec.kind.__name__, parts]
    return ["dict" if spec.kind is dict else spec.kind.__name__, parts, list(spec.keys)]


# ------------------------------------------------------------------------------------------------------------ reading


class _Reader:
    """Makes the program of a file's JSON."""

    def __init__(self, found: dict[str, Any], tensors: dict[str, Tensor]) -> None:
        self.found = found
        self.graph = Graph()
        self.nodes: dict[str, Node] = {}
        self.tensors = tensors
        self.owned: dict[str, Tensor] = {}
        for name, known in _typed(found["tied"], dict).items():
            self.tensors[name] = self.tensors[known]

    def program(self) -> ExportedProgram:
        """Return the program."""
        found, signature = self.found, ExportGraphSignature()
        constants = set(found["constants"])
        for kind, name, target, persistent, value in found["inputs"]:
            node = self._add("placeholder", name, name, (), {})
            argument = ConstantArgument(name, _leaf(self.decoded(value))) if name in constants else TensorArgument(name)
            spec = InputSpec(InputKind[kind], argument, _optional(target, str), _optional(persistent, bool))
            is_user = spec.kind is InputKind.USER_INPUT
            if is_user != (target is None) or not (is_user or self._has(target)):
                raise CheckpointError(f"the input {node.name} is a {kind} without a tensor {target!r:.80}")
            signature.input_specs.append(spec)
        functions = allowed()
        for name, target, args, kwargs in found["nodes"]:
            if target not in functions:
                raise CheckpointError(f"the graph calls {target!r:.80}, which no exported graph may")
            named = {_name(key): self.decoded(x) for key, x in _typed(kwargs, dict).items()}
            self._add("call_function", name, functions[target], tuple(map(self.decoded, _typed(args, list))), named)
        values = tuple(map(self.decoded, found["values"]))
        self.graph.output(values)
        for (kind, target, of), value in zip(found["outputs"], values, strict=True):
            signature.output_specs.append(self._output(OutputKind[kind], target, of, value))
        self.graph.lint()
        return self._complete(signature)

    def _complete(self, signature: ExportGraphSignature) -> ExportedProgram:
        found = self.found
        state = {name: self._owned(name) for name in found["state"]}
        given = found["ranges"].items()
        ranges = {_name(name): Range(_count(low), _optional(high, int)) for name, (low, high) in given}
        checks = [
            (_typed(path, str), _dtype(dtype).name, tuple(self._length(n, ranges) for n in shape))
            for path, dtype, shape in found["checks"]
        ]
        users = [s for s in signature.input_specs if s.kind is InputKind.USER_INPUT]
        outputs = [s for s in signature.output_specs if s.kind is OutputKind.USER_OUTPUT]
        numbers = iter(range(len(users)))
        inputs = {_argument(name): _spec(spec, numbers) for name, spec in found["arguments"]}
        results = iter(range(len(outputs)))
        result = _spec(found["result"], results)
        tensors = sum(isinstance(s.arg, TensorArgument) for s in users)
        if next(numbers, None) is not None or next(results, None) is not None or tensors != len(checks):
            raise CheckpointError("the arguments or the result do not fit the inputs and outputs of the graph")
        constants = {name: self._owned(name) for name in self.tensors if name not in state}
        training = _typed(found["training"], bool)
        return ExportedProgram(self.graph, signature, state, constants, checks, ranges, inputs, result, training)

    def _has(self, name: str) -> bool:
        return name in self.tensors and all(name.split("."))

    def _add(self, op: str, name: str, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Node:
        node = self.graph.create_node(op, target, args, kwargs, _name(name))
        if node.name != name:
            raise CheckpointError(f"two nodes have the name {name!r:.80}, or it is reserved")
        self.nodes[name] = node
        return node

    def _output(self, kind: OutputKind, target: Any, of: str, value: Any) -> OutputSpec:
        argument: Any = ConstantArgument("", value)
        if isinstance(value, Node):
            argument = (SymIntArgument if of == "SymInt" else TensorArgument)(value.name)
        elif kind is not OutputKind.USER_OUTPUT:
            raise CheckpointError(f"an output {kind.name} is no node")
        else:
            _leaf(value)
        if kind is OutputKind.BUFFER_MUTATION and not self._has(target):
            raise CheckpointError(f"there is no buffer {target!r:.80}")
        if kind is OutputKind.USER_INPUT_MUTATION and target not in self.nodes:
            raise CheckpointError(f"there is no argument {target!r:.80}")
        return OutputSpec(kind, argument, target)

    def _owned(self, name: str) -> Tensor:
        """Return a tensor with memory of its own, a Parameter if it is one; tied ones stay one object."""
        key = self.found["tied"].get(name, name)
        if key not in self.owned:
            tensor = self.tensors[key].clone()  # those of a file cannot be written to
            is_parameter, is_frozen = key in self.found["parameters"], key in self.found["frozen"]
            self.owned[key] = Parameter(tensor, requires_grad=not is_frozen) if is_parameter else tensor
        return self.owned[key]

    @staticmethod
    def _length(n: Any, ranges: dict[str, Range]) -> int | str:
        return _count(n) if not isinstance(n, str) else n if n in ranges else _count(n)

    def decoded(self, x: Any) -> Any:
        """Return a value of the file."""
        if isinstance(x, list):
            return [self.decoded(part) for part in x]
        if not isinstance(x, dict):
            return x
        ((kind, value),) = x.items()
        return self._decoders()[kind](value)

    def _decoders(self) -> dict[str, Callable[[Any], Any]]:
        return {
            "node": lambda x: self.nodes[x],
            "float": lambda x: float({"inf": "inf", "-inf": "-inf", "nan": "nan"}[x]),
            "tuple": lambda x: tuple(map(self.decoded, _typed(x, list))),
            "dict": lambda x: {self.decoded(key): self.decoded(value) for key, value in x},
            "slice": lambda x: slice(*map(self.decoded, x)),
            "ellipsis": lambda x: ...,
            "dtype": _dtype,
            "device": lambda x: devices.device(_typed(x, str)),
            "memory_format": lambda x: FORMATS[x],
        }


def _dtype(name: Any) -> dtypes.dtype:
    return {d.name: d for d in dtypes.BY_STORAGE.values()}[name]


def _typed(x: Any, kind: type) -> Any:
    if not isinstance(x, kind):
        raise CheckpointError(f"expected a {kind.__name__}, got {x!r:.80}")
    return x


def _optional(x: Any, kind: type) -> Any:
    return None if x is None else _typed(x, kind)


def _count(x: Any) -> int:
    if type(x) is not int or x < 0:
        raise CheckpointError(f"expected a size, got {x!r:.80}")
    return x


def _leaf(x: Any) -> Any:
    if not isinstance(x, LEAVES):
        raise CheckpointError(f"expected a number, a string or None, got {x!r:.80}")
    return x


def _name(x: Any) -> str:
    if not isinstance(x, str) or not x.isascii() or not x.isidentifier() or iskeyword(x):
        raise CheckpointError(f"expected a name, got {x!r:.80}")
    return x


def _argument(x: Any) -> str:
    """Return the name of an argument, which may be `*args` or `**kwargs`."""
    return _typed(x, str)[: len(x) - len(x.lstrip("*"))][:2] + _name(x.lstrip("*"))


def _spec(x: Any, numbers: Any) -> Spec:
    """Return containers; their leaves must be numbered in order."""
    if type(x) is int:
        if x != next(numbers, None):
            raise CheckpointError(f"leaf {x} is not the next one")
        return Leaf(x)
    kind, parts, *keys = x
    if len(parts) > MAX_PARTS:
        raise CheckpointError(f"a container has {len(parts)} parts; the limit is {MAX_PARTS}")
    specs = tuple(_spec(part, numbers) for part in parts)
    if kind in ("list", "tuple"):
        return Branch(list if kind == "list" else tuple, specs)
    (names,) = keys
    if len(names) != len(specs):
        raise CheckpointError(f"a {kind!r:.80} has {len(names)} keys and {len(specs)} parts")
    if kind == "dict":
        return Branch(dict, specs, tuple(key if type(key) is int else _typed(key, str) for key in names))
    return Branch(namedtuple(_name(kind), [_name(name) for name in names]), specs, tuple(names))
