"""Facts about the values of an exported program: dtypes, shapes, the sizes that vary, and constants."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tallow import dtypes
from tallow.core.tensor import Tensor
from tallow.errors import TallowError, TraceError
from tallow.export.dims import Range, resized
from tallow.export.program import ExportedProgram
from tallow.export.signature import ConstantArgument, InputKind
from tallow.export.targets import DRAWS
from tallow.fx.interpreter import Interpreter
from tallow.fx.node import Node
from tallow.tape.modes import no_grad

MOST_FOLDED = 1 << 22  # bytes of a constant that the export computes; a larger one is computed by the graph


@dataclass
class Known:
    """Facts about the value of a node.

    Attributes:
        tensors: dtype and shape of each tensor that the value is or has; None for a size that varies.
        sizes: of each tensor, the sizes in the first run and in the other.
        is_tuple: the value is a sequence of tensors.
        value: a value that is the same in each run; None if it depends on arguments, parameters or random numbers.
    """

    tensors: list[tuple[dtypes.dtype, list[int | None]]] = field(default_factory=list)
    sizes: list[list[tuple[int, int]]] = field(default_factory=list)
    is_tuple: bool = False
    value: Any = None


class _Probe(Interpreter):
    """Runs a program and notes what its values are."""

    def __init__(self, program: ExportedProgram) -> None:
        super().__init__(program.graph_module)
        fixed = (InputKind.BUFFER, InputKind.CONSTANT_TENSOR)
        specs = program.graph_signature.input_specs
        self.constant = {s.arg.name for s in specs if s.kind in fixed or isinstance(s.arg, ConstantArgument)}
        self.known: dict[str, Known] = {}

    def run_node(self, n: Node) -> Any:
        """Return the value of a node, and note what it is."""
        value = super().run_node(n)
        parts = value if isinstance(value, list | tuple) else [value]
        tensors = [(x.dtype, list(x.array.shape)) for x in parts if isinstance(x, Tensor)]
        known = self.known[n.name] = Known(tensors, is_tuple=isinstance(value, list | tuple))
        if n.op == "placeholder":
            known.value = value if n.name in self.constant else None
        elif n.op == "call_function" and all(self.known[x.name].value is not None for x in n.all_input_nodes):
            size = sum(x.array.nbytes for x in parts if isinstance(x, Tensor))
            name = getattr(n.target, "__name__", "")
            known.value = value if size <= MOST_FOLDED and name not in DRAWS else None
        return value


def probe(program: ExportedProgram, arguments: list[Any]) -> dict[str, Known]:
    """Run a program, and again at other sizes if some vary, and return what is known of the value of each node.

    Args:    arguments: the example's, flat
    Raises:  TraceError if the program refuses all other sizes that were tried
    """
    known = _run(program, arguments)
    if not program.range_constraints:
        return known
    failure: TallowError | None = None
    for attempt in range(4):
        try:
            other = _run(program, _at_other_sizes(program, arguments, attempt))
        except TallowError as error:
            failure = error
            continue
        for name, one in known.items():
            for (_, shape), (_, second) in zip(one.tensors, other[name].tensors, strict=True):
                pairs: list[tuple[Any, Any]] = list(zip(shape, second, strict=True))
                one.sizes.append(pairs)
                shape[:] = [n if n == m else None for n, m in pairs]
        return known
    raise TraceError("onnx.export: the program runs at the sizes of the example only") from failure


def _run(program: ExportedProgram, arguments: list[Any]) -> dict[str, Known]:
    runner = _Probe(program)
    values = iter(arguments)
    inputs = [
        next(values) if s.kind is InputKind.USER_INPUT else program.tensor(str(s.target))
        for s in program.graph_signature.input_specs
    ]
    with no_grad():
        runner.run(*inputs)
    return runner.known


def _at_other_sizes(program: ExportedProgram, arguments: list[Any], attempt: int) -> list[Any]:
    """Return the arguments with another size for each Dim; no two Dims grow by the same factor."""
    first: dict[str, int] = {}
    tensors = [x for x in arguments if isinstance(x, Tensor)]
    for tensor, (_, _, shape) in zip(tensors, program._checks, strict=True):
        first |= {n: size for size, n in zip(tensor.array.shape, shape, strict=True) if isinstance(n, str)}
    sizes: dict[str, int] = {}
    for place, (name, size) in enumerate(first.items()):
        sizes[name] = _other(size, program.range_constraints[name], place + attempt)
    checks = iter(program._checks)
    return [
        resized(x, tuple(n if isinstance(n, str) else None for n in next(checks)[2]), sizes)
        if isinstance(x, Tensor)
        else x
        for x in arguments
    ]


def _other(size: int, allowed: Range, place: int) -> int:
    candidates = [(place + 2) * size, *(size + step for step in (place + 1, -place - 1, 1, -1))]
    return next((n for n in candidates if n in allowed and n > 1 and n != size), size)
