"""`export`: write a module as an ONNX file, with the arguments of torch.onnx.export."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import IO, Any

from tallow.core.tensor import Tensor
from tallow.errors import ArgumentError, ArgumentTypeError, UnsupportedError, warn
from tallow.export import export as export_program
from tallow.export.program import ExportedProgram
from tallow.export.trees import flatten
from tallow.nn.module import Module
from tallow.onnx.exporters.conversion import Conversion
from tallow.onnx.exporters.dynamic import declared, enlarged, names_of_axes
from tallow.onnx.exporters.paths import noted_paths
from tallow.onnx.exporters.program import ONNXProgram
from tallow.onnx.exporters.quantized import recordable

OPSET, OPSETS = 18, range(18, 27)
EVAL, PRESERVE, TRAINING = range(3)  # torch.onnx.TrainingMode


def export(
    model: Module | ExportedProgram,
    args: tuple[Any, ...] | Tensor = (),
    f: str | os.PathLike[str] | IO[bytes] | None = None,
    *,
    kwargs: dict[str, Any] | None = None,
    verbose: bool | None = None,
    input_names: Sequence[str] | None = None,
    output_names: Sequence[str] | None = None,
    opset_version: int | None = None,
    dynamo: bool = True,
    external_data: bool = True,
    dynamic_shapes: dict[str, Any] | tuple[Any, ...] | list[Any] | None = None,
    custom_translation_table: dict[Callable[..., Any], Callable[..., Any]] | None = None,
    report: bool = False,
    optimize: bool = True,
    verify: bool = False,
    profile: bool = False,
    dump_exported_program: bool = False,
    artifacts_dir: str | os.PathLike[str] = ".",
    export_params: bool = True,
    keep_initializers_as_inputs: bool = False,
    dynamic_axes: Mapping[str, Mapping[int, str]] | Mapping[str, Sequence[int]] | None = None,
    training: int = EVAL,
    operator_export_type: int = 0,
    do_constant_folding: bool = True,
    custom_opsets: Mapping[str, int] | None = None,
    export_modules_as_functions: bool | Collection[type[Module]] = False,
    autograd_inlining: bool = True,
) -> ONNXProgram | None:
    """Run a module once on example arguments, and write what it computes as an ONNX file.

    Args:
        model: a module, or a program that `tl.export.export` has made.
        args, kwargs: example arguments. Tensors become inputs; other arguments are fixed.
        f: a path or a binary file; None to get the program alone.
        verbose: print the graph of the program.
        input_names, output_names: names for the first inputs and outputs; the others keep those of the arguments and of
            the calls that compute them.
        opset_version: of the operators, 18 to 26; None is 18.
        dynamo: False returns None instead of the program, and takes `dynamic_axes` only.
        external_data: write weights of 1 KiB or more to a second file, `f` with `.data` behind it, as is always done
            beyond 1.5 GiB, because an ONNX file holds at most 2 GiB. A binary file gets everything.
        dynamic_shapes: the sizes that may vary, as for `tl.export.export`; a name stands for a Dim.
        custom_translation_table: function of tallow -> exporter, see `tallow.onnx.exporters.registry`.
        verify: run the file by `tl.onnx.load`, and raise an error if its outputs differ from the module's.
        export_params: False leaves out the weights.
        keep_initializers_as_inputs: make weights inputs as well, so that a caller may pass others.
        dynamic_axes: the sizes that may vary, by the name of an input or output: {dim: name}, or a list of dims.
        training: torch.onnx.TrainingMode: 0 exports in evaluation mode, 1 in the module's own, 2 in training mode.

    Returns: an ONNXProgram; None if `dynamo` is False

    Raises:
        UnsupportedError: for calls that ONNX has no operators for, all at once; and for an argument without a meaning
            here, by its name.
        TraceError: as `tl.export.export`. NumericError: with `verify`, if outputs differ.
        ArgumentError: names, sizes or versions that do not fit; sizes or a mode for a program, which has its own.

    Example:
        >>> import io
        >>> import tallow as tl
        >>> program = tl.onnx.export(tl.nn.Linear(3, 2), (tl.ones(4, 3),), io.BytesIO(), input_names=["x"])
        >>> [value.name for value in program.model_proto.graph.input]
        ['x']
    """
    _refuse(
        report=report, profile=profile, dump_exported_program=dump_exported_program,
        artifacts_dir=artifacts_dir != ".", operator_export_type=operator_export_type, custom_opsets=custom_opsets,
        export_modules_as_functions=export_modules_as_functions, autograd_inlining=not autograd_inlining,
    )  # fmt: skip
    _warn_of_folding(optimize and do_constant_folding)
    if not dynamo and (dynamic_shapes is not None or f is None):
        raise ArgumentError("onnx.export: dynamo=False needs f, and takes dynamic_axes instead of dynamic_shapes")
    opset = _opset(opset_version)
    axes = names_of_axes(dynamic_axes)
    program = _program(model, args, kwargs or {}, dynamic_shapes, axes, input_names, training)
    made = ONNXProgram(_converted(program, opset, custom_translation_table), input_names, output_names, axes)
    if verbose:
        print(program)
    if verify:
        made.verify()
    if f is not None:
        made.save(
            f, include_initializers=export_params, keep_initializers_as_inputs=keep_initializers_as_inputs,
            external_data=external_data,
        )  # fmt: skip
    return made if dynamo else None


def _refuse(**arguments: Any) -> None:
    """Raise UnsupportedError for an argument that has no meaning here."""
    for name, value in arguments.items():
        if value:
            raise UnsupportedError(f"onnx.export: {name} is not supported by this exporter", hint="leave it out")


def _warn_of_folding(is_asked: bool) -> None:
    if not is_asked:
        warn("onnx.export: constants are folded all the same; optimize and do_constant_folding have no effect")


def _opset(version: int | None) -> int:
    if version is None:
        return OPSET
    if version not in OPSETS:
        raise UnsupportedError(
            f"onnx.export: opset_version must be {OPSETS.start} to {OPSETS.stop - 1}, not {version!r}",
            hint="onnx.version_converter writes older versions",
        )
    return version


def _converted(program: ExportedProgram, opset: int, table: dict[Any, Any] | None) -> Conversion:
    arguments, kwargs = program.example_inputs or ((), {})
    if program.example_inputs is None:
        raise ArgumentError("onnx.export: the program was read from a file", hint="pass its example arguments in args")
    by_name = [name for name in program._inputs if name in kwargs]  # in the order of the signature
    ordered = [*arguments, *(kwargs[name] for name in by_name), *(x for k, x in kwargs.items() if k not in by_name)]
    leaves: list[tuple[str, Any]] = []
    flatten(ordered, "argument", leaves, "argument")
    conversion = Conversion(program, [leaf for _, leaf in leaves], opset, table or {})
    conversion.run()
    return conversion


def _program(
    model: Any,
    args: Any,
    kwargs: dict[str, Any],
    dynamic_shapes: Any,
    axes: dict[str, dict[int, str]],
    input_names: Sequence[str] | None,
    training: int,
) -> ExportedProgram:
    """Return the model as a program, in the mode that `training` says."""
    args = (args,) if isinstance(args, Tensor) else args
    if not isinstance(args, tuple):
        raise ArgumentTypeError(f"onnx.export: args must be a tuple or a Tensor, not {type(args).__name__}")
    if isinstance(model, ExportedProgram):
        if dynamic_shapes is not None or axes or training != EVAL:
            raise ArgumentError(
                "onnx.export: a program has the sizes and the mode that it was exported with",
                hint="pass dynamic_shapes to tl.export.export, or the module in place of the program",
            )
        if args or kwargs:
            model.example_inputs = (args, kwargs)
        return model
    if not isinstance(model, Module):
        raise ArgumentTypeError(f"onnx.export: expected a Module or an ExportedProgram, got {type(model).__name__}")
    shapes = declared(model, args, kwargs, dynamic_shapes, axes, input_names)
    args, kwargs = enlarged(model, args, kwargs, shapes)
    with _mode(model, training), recordable(model) as recorded, noted_paths(recorded):
        return export_program(recorded, args, kwargs, dynamic_shapes=shapes)


@contextmanager
def _mode(model: Module, training: int) -> Iterator[None]:
    """Have all modules in the mode that `training` says within the block."""
    before = [(module, module.training) for module in model.modules()]
    if training not in (EVAL, PRESERVE, TRAINING):
        raise ArgumentError(f"onnx.export: training={training!r} is no TrainingMode")
    if training != PRESERVE:
        model.train(training == TRAINING)
    try:
        yield
    finally:
        for module, mode in before:
            module.training = mode
