"""Load an ONNX file as a module."""

from __future__ import annotations

import os
from pathlib import Path
from typing import IO, Any, TypeAlias

from tallow.errors import ArgumentTypeError
from tallow.fx.graph_module import GraphModule
from tallow.io.source import Source, open_source
from tallow.onnx.builder import Builder, inputs_of
from tallow.onnx.protobuf import ModelProto, read_model
from tallow.onnx.scopes import Program
from tallow.onnx.tensors import ExternalFiles

ModelSource: TypeAlias = Source | IO[bytes]


class OnnxModule(GraphModule):
    """A module whose graph comes from an ONNX file.

    Attributes:
        input_names, output_names: the names in the file.
    """

    input_names: tuple[str, ...]
    output_names: tuple[str, ...]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Return the outputs for inputs by position or by their names in the file: one Tensor, or a tuple."""
        if kwargs and len(args) + len(kwargs) == len(self.input_names):
            args = (*args, *(kwargs.pop(name) for name in self.input_names[len(args) :] if name in kwargs))
        return super().__call__(*args, **kwargs)


def load(source: ModelSource) -> OnnxModule:
    """Load a model from an ONNX file, in eval mode.

    Args:
        source: a path, whose tensors are mapped; bytes; or an open binary file.

    Raises:  CheckpointError if the file is truncated or malformed; UnsupportedError that lists the operators that are
             not supported, with counts; OSError if it cannot be read
    """
    opened = open_source(_content(source))
    model = read_model(opened)
    folder = Path(source).absolute().parent if isinstance(source, str | os.PathLike) else None
    return module_of(model, ExternalFiles(folder), opened.name)


def _content(source: ModelSource) -> Source:
    read = getattr(source, "read", None)
    if read is None or isinstance(source, str | os.PathLike):
        return source  # type: ignore[return-value]
    data = read()
    if not isinstance(data, bytes):
        raise ArgumentTypeError("onnx.load: the file is open as text", hint='open it with mode "rb"')
    return data


def module_of(model: ModelProto, files: ExternalFiles, name: str) -> OnnxModule:
    """Return the module of a file's messages; raises as `load`."""
    program = Program(model, files, name)
    program.refuse_unsupported()
    graph = model.graph
    assert graph is not None  # `read_model` has refused such a file
    builder = Builder(program)
    builder.build(graph)
    module = builder.module(OnnxModule, "OnnxModule")
    assert isinstance(module, OnnxModule)
    module.input_names = tuple(info.name for info in inputs_of(graph))
    module.output_names = tuple(info.name for info in graph.output)
    module.eval()
    return module
