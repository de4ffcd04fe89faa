"""Load an ONNX file as a module."""

from __future__ import annotations

import os
from itertools import chain
from pathlib import Path
from traceback import walk_tb
from typing import IO, Any, ClassVar, TypeAlias

from tallow.core.creation import get_default_device
from tallow.core.tensor import Tensor
from tallow.core.watching import is_watched
from tallow.devices import device
from tallow.dtypes import dtype
from tallow.errors import ArgumentError, ArgumentTypeError, GraphError, TallowError
from tallow.fx.graph_module import GraphModule
from tallow.hub import FILE_OF_REPOSITORY, local_file
from tallow.io.source import Source, open_source
from tallow.nn.hooks import STRUCTURE
from tallow.onnx.builder import Builder, inputs_of
from tallow.onnx.examples import FAILURES
from tallow.onnx.explain import explanation
from tallow.onnx.inference import Inference, in_rows, takes
from tallow.onnx.passes import clean
from tallow.onnx.protobuf import ModelProto, read_model
from tallow.onnx.python import write_python
from tallow.onnx.results import own_results
from tallow.onnx.scopes import Program
from tallow.onnx.signature import ValueInfo, bound, value_info
from tallow.onnx.tensors import ExternalFiles
from tallow.tape.modes import INFERENCE, PLAIN, mode

CPU = device("cpu")
ModelSource: TypeAlias = Source | IO[bytes]


class OnnxModule(GraphModule):
    """A module whose graph comes from an ONNX file.

    Call it with the inputs by position, or by their names in the file. It returns one value, or a tuple of them.
    """

    quick: ClassVar[Inference | None] = None
    first: ClassVar[tuple[int, Tensor | None] | None] = None

    @property
    def input_names(self) -> tuple[str, ...]:
        """The names of the inputs in the file."""
        return tuple(info.name for info in self.inputs())

    @property
    def output_names(self) -> tuple[str, ...]:
        """The names of the outputs in the file."""
        return tuple(info.name for info in self.outputs())

    def inputs(self) -> tuple[ValueInfo, ...]:
        """Return name, dtype and dims of each input."""
        return self.meta["inputs"]

    def outputs(self) -> tuple[ValueInfo, ...]:
        """Return name, dtype and dims of each output, as far as the file says."""
        return self.meta["outputs"]

    def to_python(self, path: Path | str) -> None:
        """Write the model as a Python module, and its tensors to a safetensors file of the same name beside it.

        The module has one class, `Model`, whose forward is `code`.

        Raises:  UnsupportedError if a node holds a value that has no form in source, such as an array of strings
        """
        write_python(self, Path(path))

    def explain(self) -> None:
        """Print what was recognized, and which nodes call an operator that Python runs step by step."""
        print(explanation(self))

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        """Run the model.

        Raises:  ArgumentTypeError that lists all inputs that do not fit; any error of an operator, with a note that
                 names the node; GraphError for one that is not of tallow
        """
        values = bound(self.inputs(), args, kwargs, self._dtype)
        place = self._device()
        try:
            if place == CPU:
                return self._quickly(values) if self._is_quick(values) else super().__call__(*values)
            with place:  # where operators make tensors of shapes and of numbers
                return super().__call__(*values)
        except TallowError as error:
            if (where := self._place(error)) is not None:
                error.add_note(where)
            raise
        except FAILURES as error:
            raise GraphError(f"{self._place(error) or 'the model'}: {type(error).__name__}: {error}") from error

    def _device(self) -> device:
        """Return the device of the first tensor, which is looked for again after a change of the module."""
        own = type(self)  # as in `_quickly`
        if own.first is None or own.first[0] != STRUCTURE.changes:
            own.first = STRUCTURE.changes, next(chain(self.parameters(), self.buffers()), None)
        tensor = own.first[1]
        return CPU if tensor is None else tensor.device

    def _is_quick(self, values: tuple[Any, ...]) -> bool:
        """Return whether a call records no gradients, and nothing else watches it."""
        if mode.usual not in (PLAIN, INFERENCE) or self.training or self.has_hooks() or is_watched():
            return False
        return takes(values)

    def _quickly(self, values: tuple[Any, ...]) -> Any:
        """Run the quick form of the graph; if that fails, the graph itself, which may compute it, or names the node."""
        own = type(self)  # of this object alone, as its forward; copies make theirs
        if own.quick is None or not own.quick.holds():
            own.quick = Inference(self)
        if (run := own.quick.run) is None:
            return super().__call__(*values)
        try:
            made = run(*values)
        except (TallowError, *FAILURES):
            return super().__call__(*values)
        return tuple(map(in_rows, made)) if isinstance(made, tuple) else in_rows(made)

    def _place(self, error: Exception) -> str | None:
        """Return which node of the file raised an error."""
        filename = type(self).forward.__code__.co_filename
        lines = [number for frame, number in walk_tb(error.__traceback__) if frame.f_code.co_filename == filename]
        if not lines:
            return None
        name = self.code.splitlines()[lines[-1] - 1].split("=")[0].strip()
        found = next(
            (node.meta["onnx"] for node in self.graph.nodes if node.name == name and "onnx" in node.meta), None
        )
        return None if found is None else f"in the node {found[1]!r:.80}, {found[0]:.80}"

    def _dtype(self) -> dtype | None:
        """Return the dtype of the weights, which `half` and `to` change."""
        return next((p.dtype for p in self.parameters() if p.dtype.is_floating_point), None)


def load(
    source: ModelSource,
    *,
    revision: str | None = None,
    token: str | None = None,
    max_trips: int | None = None,
    approximate: bool = False,
) -> OnnxModule:
    """Load a model from an ONNX file, in eval mode, to the default device.

    Args:
        source: a path, whose tensors are mapped; bytes; an open binary file; or `owner/repository:file.onnx` on the
            Hub, which is downloaded once. Files of external data are looked for in the folder of the model alone.
        revision, token: of the Hub, as in `tallow.hub.local_model`.
        max_trips: the most iterations of a Loop; one that goes on raises an error. None allows what the file asks for.
        approximate: run products of inputs that the file quantizes by their range (DynamicQuantizeLinear) on the
            kernels for blocks. They are several times as fast, and round each 32 elements of the input by a scale of
            their own, so the results are not the exact integers of the file, though as close to those of floats.

    Raises:  CheckpointError if the file is truncated or malformed; UnsupportedError that lists the operators that are
             not supported, with counts; OSError if it cannot be read; HubError

    Example:
        model = tl.onnx.load("detector.onnx")
        print(model.input_names, model.code)
        boxes = model(images)
    """
    if isinstance(source, str) and (match := FILE_OF_REPOSITORY.fullmatch(source)) and not Path(source).exists():
        beside = [f"{match[2]}{end}" for end in ("_data", "_data_*", ".data")]
        source = str(local_file(match[1], match[2], beside, revision=revision, token=token))
    elif revision is not None or token is not None:
        raise ArgumentError("onnx.load: revision and token are for models on the Hub", hint="leave them out")
    opened = open_source(_content(source))
    model = read_model(opened)
    return module_of(model, _files_of(source), opened.name, max_trips, approximate)


def _files_of(source: ModelSource) -> ExternalFiles:
    if not isinstance(source, str | os.PathLike):
        return ExternalFiles(None)
    path = Path(source).absolute()
    return ExternalFiles(path.parent, path.resolve().parent if path.is_symlink() else None)


def _content(source: ModelSource) -> Source:
    read = getattr(source, "read", None)
    if read is None or isinstance(source, str | os.PathLike):
        return source  # type: ignore[return-value]
    data = read()
    if not isinstance(data, bytes):
        raise ArgumentTypeError("onnx.load: the file is open as text", hint='open it with mode "rb"')
    return data


def module_of(
    model: ModelProto, files: ExternalFiles, name: str, max_trips: int | None = None, approximate: bool = False
) -> OnnxModule:
    """Return the module of a file's messages; raises as `load`."""
    with CPU:  # arrays of the file lie there, and operators compute with them
        module = _built(Program(model, files, name, max_trips))
        module.meta["passes"] = clean(module, approximate)
        own_results(module)
    if (place := get_default_device()) != CPU:
        module.to(place)
    return module


def _built(program: Program) -> OnnxModule:
    program.refuse_unsupported()
    graph = program.model.graph
    assert graph is not None  # `read_model` has refused such a file
    builder = Builder(program, kind=OnnxModule)
    builder.build(graph)
    module = builder.module("OnnxModule")
    assert isinstance(module, OnnxModule)
    module.meta["inputs"] = tuple(map(value_info, inputs_of(graph)))
    module.meta["outputs"] = tuple(map(value_info, graph.output))
    module.eval()
    return module
