"""Export of models to ONNX files, as Keras' `model.export(path, format="onnx")`."""

from __future__ import annotations

from typing import Any

import tallow as tl
from tallow.errors import ArgumentError, ArgumentTypeError, UnsupportedError
from tallow.export.trees import flatten
from tallow.io.source import Path
from tallow.keras.dtype_names import as_dtype
from tallow.keras.structure import map_structure

BATCH, OTHER = 2, 32  # sizes of the example where the model takes any


def export(
    model: Any, filepath: Path, format: str, verbose: bool | None, input_signature: Any, opset_version: int | None
) -> None:
    """Write a model as one ONNX file, whose inputs have the names of the model's.

    Args:    input_signature: as `keras.Model.export`: tensors or specs, for a model without symbolic inputs
    Raises:  UnsupportedError for another format; ArgumentError for a model whose inputs are not known
    """
    if format != "onnx":
        raise UnsupportedError(f"export: format={format!r:.40}", hint='use format="onnx", or save(path)')
    if input_signature is None and model._graph is None:
        raise ArgumentError(f"{model.name}: the inputs are not known", hint="pass input_signature")
    structure = (model.input,) if input_signature is None else tuple(_as_list(input_signature))
    names: list[tuple[str, Any]] = []
    flatten(map_structure(lambda spec: getattr(spec, "name", None) or "input", structure), "input", names, "argument")
    given = [name if name != "input" else f"input_{i}" for i, (_, name) in enumerate(names)]
    tl.onnx.export(
        model, map_structure(_example, structure), str(filepath), input_names=given, opset_version=opset_version,
        dynamic_shapes={"args": map_structure(_sizes, structure)}, external_data=False,
    )  # fmt: skip
    if verbose:
        print(f"Saved artifact at '{filepath}'.")


def _as_list(signature: Any) -> Any:
    return signature if isinstance(signature, list | tuple) else [signature]


def _shape(spec: Any) -> tuple[int | None, ...]:
    shape = getattr(spec, "shape", None)
    if shape is None:
        raise ArgumentTypeError(f"export: input_signature has {spec!r:.80}, which has no shape")
    return tuple(shape)


def _example(spec: Any) -> Any:
    sizes = [n if n is not None else OTHER if dim else BATCH for dim, n in enumerate(_shape(spec))]
    dtype = getattr(spec, "dtype", None)
    return tl.zeros(sizes, dtype=tl.float32 if dtype is None else as_dtype(dtype))


def _sizes(spec: Any) -> dict[int, str]:
    """Return the names of the sizes that vary: "batch" for the first, and one of its own for any other."""
    name = getattr(spec, "name", None) or "input"
    varying = [dim for dim, n in enumerate(_shape(spec)) if n is None]
    return {dim: f"{name}_{dim}" if dim else "batch" for dim in varying}
