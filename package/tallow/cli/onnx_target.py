"""`tallow convert` to and from ONNX files."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tallow import dtypes
from tallow.autograd import no_grad
from tallow.core.creation import ones, zeros
from tallow.core.tensor import Tensor
from tallow.errors import ArgumentError
from tallow.io.whole_folder import atomic_folder
from tallow.models.causal_lm import CausalLM
from tallow.models.pretrained import PretrainedModel, SpanLogits
from tallow.onnx.exporting import export
from tallow.onnx.loading import load
from tallow.onnx.protobuf import GraphProto, read_model
from tallow.onnx.summary import each_weight
from tallow.onnx.tensors import ExternalFiles, tensor_of

LENGTH = 8  # tokens of the example on which a model is run
MODULE = "model.py"  # in a folder; its weights are beside it
CUT = "cache"  # the first parameter that an export leaves out, with what follows it


def tensors_of(path: str) -> Mapping[str, Tensor]:
    """Return the weights of an ONNX file, named as `tallow inspect` shows them.  Raises: CheckpointError, OSError"""
    graph = read_model(path).graph or GraphProto()
    files = ExternalFiles(Path(path).absolute().parent)
    values = {name: tensor_of(tensor, files) for name, tensor in each_weight(graph)}
    return {name: value for name, value in values.items() if isinstance(value, Tensor)}


def write_python(source: str, target: Path, *, force: bool) -> None:
    """Write an ONNX model as a Python module with its weights, to a .py file or to a folder.

    Args:    force: replace the weights beside the .py file
    Raises:  as `tallow.onnx.load` and `OnnxModule.to_python`
    """
    module = load(source)
    if target.suffix == ".py":
        weights = target.with_suffix(".safetensors")
        if weights.exists() and not force:
            raise ArgumentError(f"{weights} exists", hint="choose another name, or overwrite it with --force")
        module.to_python(target)
        return
    with atomic_folder(target) as folder:
        module.to_python(folder / MODULE)


def write_onnx(model: PretrainedModel, target: Path) -> None:
    """Write a model as an ONNX file that takes any batch, and texts of any length.

    Raises:  ArgumentError for a model whose inputs do not come from one text or picture; as `tallow.onnx.export`
    """
    examples = _examples(model)
    texts = {name: value for name, value in examples.items() if name != "pixel_values"}
    axes: dict[str, dict[int, str]] = {name: {0: "batch"} for name in examples}
    axes |= {name: {0: "batch", 1: "sequence"} for name in texts}
    export(
        model.eval(),
        tuple(examples.values()),
        target,
        input_names=[*examples],
        output_names=_output_names(model, examples),
        dynamo=False,
        dynamic_axes=axes,
        external_data=False,
    )


def _output_names(model: PretrainedModel, examples: Mapping[str, Tensor]) -> list[str] | None:
    """Return the names of the outputs as optimum and transformers.js read them; None if the model names none."""
    if isinstance(model, CausalLM):
        return ["logits"]
    with no_grad():
        outputs = model(*examples.values())
    if isinstance(outputs, Tensor):
        return ["logits" if "For" in type(model).__name__ else "last_hidden_state"]
    if isinstance(outputs, SpanLogits):
        return [f"{name}_logits" for name in outputs._fields]
    fields: dict[str, Any] = outputs._asdict() if hasattr(outputs, "_asdict") else {}
    named = {name: value for name, value in fields.items() if value is not None}
    return [*named] if all(isinstance(value, Tensor) for value in named.values()) else None


def _examples(model: PretrainedModel) -> dict[str, Tensor]:
    """Return a value for each tensor that the model takes, by transformers' names."""
    examples: dict[str, Tensor] = {}
    config: Any = model.config
    for name, parameter in inspect.signature(model.forward).parameters.items():
        if name == CUT or parameter.kind is parameter.KEYWORD_ONLY:
            break
        if name in ("input_ids", "tokens_BT"):
            examples["input_ids"] = zeros(1, LENGTH, dtype=dtypes.int64)
        elif name in ("attention_mask", "token_type_ids"):
            examples[name] = (ones if name == "attention_mask" else zeros)(1, LENGTH, dtype=dtypes.int64)
        elif name == "pixel_values":
            side = config.image_size
            height, width = (side, side) if isinstance(side, int) else side
            examples[name] = zeros(1, config.num_channels, height, width)
        else:
            raise ArgumentError(
                f"a {type(model).__name__} takes {name}, of which the command knows no example",
                hint="write a program with tl.onnx.export",
            )
    return examples
