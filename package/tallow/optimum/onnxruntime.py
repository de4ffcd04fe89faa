"""Models in ONNX files with transformers' inputs and results, by the names of the package optimum.

    model = ORTModelForSequenceClassification.from_pretrained(folder)
    model(**tokenizer("a text", return_tensors="pt")).logits

A folder has a config.json, and the model in `onnx/model.onnx`, as the repositories for transformers.js have it, or in
`model.onnx`.
"""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar, Self

import tallow as tl
from tallow import nn
from tallow.errors import ArgumentError, ArgumentTypeError, CheckpointError, HubError
from tallow.hub import local_file, local_settings
from tallow.onnx.loading import OnnxModule, load
from tallow.optimum.folders import FILES, any_config
from tallow.transformers import modeling_outputs as results
from tallow.transformers.without_effect import Neutral, effective

# What chooses among the engines of ONNX Runtime; there is one here.
NEUTRAL: Neutral = {
    "provider": (None, "CPUExecutionProvider"),
    "export": (None, False),
    **dict.fromkeys(("session_options", "provider_options", "use_io_binding", "trust_remote_code"), (None, False)),
}


class ORTModel(nn.Module):
    """A model of an ONNX file.

    Args:
        model: the module of the file.
        config: of transformers.

    Attributes:
        output: the class of the results, whose fields are the file's outputs.

    Raises:  CheckpointError if the file's outputs are those of another task, such as `last_hidden_state` for `logits`
    """

    output: ClassVar[Any] = results.BaseModelOutput
    main_input_name = "input_ids"

    def __init__(self, model: OnnxModule, config: Any = None) -> None:
        super().__init__()
        _check_outputs(type(self), model)
        self.model = model
        self.config = config
        self.name_or_path = ""

    @classmethod
    def from_pretrained(
        cls,
        name: str | PathLike[str],
        *,
        config: Any = None,
        file_name: str | None = None,
        subfolder: str = "",
        revision: str | None = None,
        token: str | None = None,
        dtype: Any = None,
        **options: Any,
    ) -> Self:
        """Load a model from a folder or a repository of the Hub.

        Args:
            file_name: of the ONNX file; by default `model.onnx`, or `model_quantized.onnx` if there is no other, in the
                folder `onnx` or at the top.
            subfolder: of the file.
            dtype: of the weights; None and "auto" mean those of the file.
            provider, session_options, ...: of ONNX Runtime; values that would change results are refused.

        Raises:  CheckpointError if there is no such file; HubError; as `tallow.onnx.load`
        """
        if unknown := effective("from_pretrained", options, NEUTRAL):
            raise ArgumentTypeError(f"from_pretrained got an unexpected argument {next(iter(unknown))!r}")
        wanted = [str(Path(subfolder) / (file_name or "model.onnx"))] if file_name or subfolder else list(FILES)
        hub = {"revision": revision, "token": token}
        if Path(name).is_dir():
            folder = Path(name)
            file = next((folder / each for each in wanted if (folder / each).is_file()), None)
            if file is None:
                raise CheckpointError(f"{folder} has none of {', '.join(wanted)}", hint="pass file_name=")
        else:
            folder = local_settings(str(name), **hub)
            file = _downloaded(str(name), wanted, hub)
        model = load(file)
        if dtype not in (None, "auto"):
            model.to(getattr(tl, dtype) if isinstance(dtype, str) else dtype)
        made = cls(model, config if config is not None else any_config(folder))
        made.name_or_path = str(name)
        return made.eval()

    def forward(self, **inputs: Any) -> Any:
        """Run the model. Inputs that the file lacks are left out. A missing mask is ones, missing segments are zeros.

        Raises:  ArgumentError for an input that is missing; as `OnnxModule`
        """
        given: dict[str, Any] = {}
        like = next((value for name, value in inputs.items() if value is not None), None)
        for info in self.model.inputs():
            value = inputs.get(info.name)
            if value is None and like is not None and info.name in ("attention_mask", "token_type_ids"):
                value = tl.ones_like(like) if info.name == "attention_mask" else tl.zeros_like(like)
            if info.name == "pixel_mask" and like is not None:
                value = _mask_of(value, inputs["pixel_values"], info.shape or ())
            if value is None:
                raise ArgumentError(f"the model needs {info.name}", hint=f"pass {', '.join(self.model.input_names)}")
            given[info.name] = value.to(info.dtype) if info.dtype is not None and _is_whole(value) else value
        outputs = self.model(**given)
        named = zip(self.model.output_names, outputs if isinstance(outputs, tuple) else (outputs,), strict=True)
        fields = self.output.__dataclass_fields__
        found = {name: value for name, value in named if name in fields}
        if not found:  # a file whose outputs have names of their own: the first one is the main result
            first = outputs[0] if isinstance(outputs, tuple) else outputs
            found = {next(each for each in fields if each != "loss"): first}
        return self.output(**found)


def _downloaded(repository: str, wanted: Sequence[str], hub: dict[str, Any]) -> Path:
    """Return the first of some files that a repository of the Hub has.  Raises: HubError"""
    errors = []
    for file in wanted:
        try:
            return local_file(repository, file, [f"{file}_data*", f"{file}.data"], **hub)
        except HubError as error:
            errors.append(error)
    raise errors[0]


def _check_outputs(kind: type[ORTModel], model: OnnxModule) -> None:
    """Raise CheckpointError if no output is one of the task, but one is named as the result of another task."""
    names = set(model.output_names)
    others = {name: each for each in ORTModel.__subclasses__() for name in each.output.__dataclass_fields__}
    if names & kind.output.__dataclass_fields__.keys() or not (found := sorted(names & others.keys())):
        return
    raise CheckpointError(
        f"{kind.__name__}: the outputs of the file are {', '.join(model.output_names)}",
        hint=f"use {others[found[0]].__name__} or its pipeline, or a file of another task",
    )


def _mask_of(given: Any, pixels: Any, sizes: Sequence[Any]) -> Any:
    """Return the mask of the pixels of pictures: the given one, unless the file has a size of its own for it."""
    own = [side for side in sizes[1:] if isinstance(side, int)]
    if given is not None and own in ([], list(given.shape[1:])):
        return given
    shape = own if len(own) == 2 else pixels.shape[2:]
    if given is not None and not given.all():
        raise ArgumentError(
            f"a mask of {tuple(given.shape)} with padding; that of the file is {tuple(sizes)}",
            hint="pass one picture at a time",
        )
    return tl.ones((pixels.shape[0], *shape), dtype=tl.int64, device=pixels.device)


def _is_whole(value: Any) -> bool:
    return not value.dtype.is_floating_point


class ORTModelForFeatureExtraction(ORTModel):
    """Vectors of tokens: `last_hidden_state`, and `pooler_output` if the file has it."""

    output = results.BaseModelOutputWithPooling


class ORTModelForSequenceClassification(ORTModel):
    """Labels of texts: `logits`."""

    output = results.SequenceClassifierOutput


class ORTModelForTokenClassification(ORTModel):
    """Labels of tokens: `logits`."""

    output = results.TokenClassifierOutput


class ORTModelForMaskedLM(ORTModel):
    """Tokens for masks: `logits`."""

    output = results.MaskedLMOutput


class ORTModelForQuestionAnswering(ORTModel):
    """Spans of answers: `start_logits` and `end_logits`."""

    output = results.QuestionAnsweringModelOutput


class ORTModelForImageClassification(ORTModel):
    """Labels of pictures: `logits`."""

    output = results.ImageClassifierOutput
    main_input_name = "pixel_values"


class ORTModelForObjectDetection(ORTModel):
    """Boxes of objects: `logits` and `pred_boxes`."""

    output = results.ObjectDetectionOutput
    main_input_name = "pixel_values"


class ORTModelForSemanticSegmentation(ORTModel):
    """Labels of pixels: `logits`."""

    output = results.SemanticSegmenterOutput
    main_input_name = "pixel_values"


class ORTModelForImageSegmentation(ORTModel):
    """Masks of segments: `logits` of pixels, or those of queries and their masks."""

    output = results.ImageSegmentationOutput
    main_input_name = "pixel_values"


class ORTModelForDepthEstimation(ORTModel):
    """Depths of pixels: `predicted_depth`."""

    output = results.DepthEstimatorOutput
    main_input_name = "pixel_values"


# By the Auto class that loads the same task's models.
BY_AUTO: dict[str, type[ORTModel]] = {
    "AutoModel": ORTModelForFeatureExtraction,
    "AutoModelForSequenceClassification": ORTModelForSequenceClassification,
    "AutoModelForTokenClassification": ORTModelForTokenClassification,
    "AutoModelForMaskedLM": ORTModelForMaskedLM,
    "AutoModelForQuestionAnswering": ORTModelForQuestionAnswering,
    "AutoModelForImageClassification": ORTModelForImageClassification,
    "AutoModelForObjectDetection": ORTModelForObjectDetection,
    "AutoModelForSemanticSegmentation": ORTModelForSemanticSegmentation,
    "AutoModelForImageSegmentation": ORTModelForImageSegmentation,
    "AutoModelForDepthEstimation": ORTModelForDepthEstimation,
}
